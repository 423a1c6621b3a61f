// Writes the little JSON that Python reads.
#pragma once
#include <string>
#include <string_view>

namespace dml {

// Control characters become spaces.
inline void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  out += '"';
}

}  // namespace dml
