//! The table of all variables, compiled into the crates.

/// `variables.toml`: `[[variable]]` before each variable, and then `key = "text"` on a line each.
pub(crate) const TABLE: &str = include_str!("../variables.toml");

/// The accepted values of a variable, in words; `None` for a name that is not in the table.
pub(crate) fn values(name: &str) -> Option<&'static str> {
    TABLE
        .split("[[variable]]")
        .skip(1)
        .find(|entry| text(entry, "name") == Some(name))
        .and_then(|entry| text(entry, "values"))
}

/// The text of a key.
pub(crate) fn text(entry: &'static str, key: &str) -> Option<&'static str> {
    entry.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
}
