// Writes the little JSON that Python reads.
#pragma once
#include <string>
#include <string_view>

namespace dml {

// Operator names contain no other characters that JSON escapes.
inline void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

}  // namespace dml
