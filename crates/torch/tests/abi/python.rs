//! The interface as a Python module for ctypes.

use crate::read::{Definition, Interface, Named, Type};
use std::collections::HashSet;

const HEAD: &str = "\
from __future__ import annotations

from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from enum import IntEnum
from typing import Any
";

/// `python/torch_dml/abi.py`.
pub fn module(interface: &Interface) -> String {
    let mut out = format!("\"\"\"The engine's C ABI for ctypes.\n\n{}\n\"\"\"\n\n{HEAD}", crate::WRITTEN);
    let mut plain = Plain::default();
    for definition in &interface.definitions {
        match definition {
            Definition::Constant { docs, name, value } => {
                out += &format!("\n# {}\n{name} = {value}\n", docs.join("\n# "));
            }
            Definition::Enum { docs, name, values, .. } => {
                let values: String =
                    values.iter().map(|value| format!("    {} = {}\n", value.name, value.is)).collect();
                out += &class(&format!("Dml{name}(IntEnum)"), docs, &values);
            }
            Definition::Struct { docs, name, is_union: false, fields } if fields.iter().all(|f| plain.has(&f.is)) => {
                let field =
                    |Named { name, is, .. }: &Named<Type>| format!("        (\"{name}\", {}),\n", plain.ctype(is));
                let fields: String = fields.iter().map(field).collect();
                out += &class(&format!("{name}(Structure)"), docs, &format!("    _fields_ = (\n{fields}    )\n"));
                plain.0.insert(name.clone());
            }
            Definition::Struct { .. } => {}
        }
    }
    out += "\n# What each function returns, and its arguments.\nFUNCTIONS: dict[str, tuple[Any, list[Any]]] = {\n";
    for function in interface.sections.iter().flat_map(|section| &section.functions) {
        let arguments: Vec<String> = function.arguments.iter().map(|(_, of)| plain.ctype(of)).collect();
        let result = plain.ctype(&function.result);
        out += &format!("    \"{}\": ({result}, [{}]),\n", function.name, arguments.join(", "));
    }
    out += "}\n";
    // One blank line is enough between constants, and two stand around each class.
    while out.contains("\n\n\n\n") {
        out = out.replace("\n\n\n\n", "\n\n\n");
    }
    out
}

/// A class between blank lines.
fn class(head: &str, docs: &[String], body: &str) -> String {
    let docs = match docs {
        [one] => one.clone(),
        several => format!("{}\n    ", several.join("\n    ")),
    };
    format!("\n\nclass {head}:\n    \"\"\"{docs}\"\"\"\n\n{body}\n\n")
}

/// The structs that Python reads and writes: numbers, arrays and structs of them, and pointers to
/// bytes and to such structs.
#[derive(Default)]
struct Plain(HashSet<String>);

impl Plain {
    fn has(&self, of: &Type) -> bool {
        match of {
            Type::Number(_) => true,
            Type::Struct(name) => self.0.contains(name),
            Type::Array(of, _) => self.has(of),
            Type::Pointer { to, is_const: true } => match &**to {
                Type::Void => true,
                Type::Struct(name) => self.0.contains(name),
                _ => false,
            },
            _ => false,
        }
    }

    fn ctype(&self, of: &Type) -> String {
        match of {
            Type::Void => "None".to_owned(),
            Type::Number(of) => match of.as_str() {
                "usize" => "c_size_t".to_owned(),
                "f64" => "c_double".to_owned(),
                integer if integer.starts_with('u') => format!("c_uint{}", &integer[1..]),
                integer => format!("c_int{}", &integer[1..]),
            },
            Type::Struct(name) => name.clone(),
            Type::Pointer { to, .. } => match &**to {
                Type::Char => "c_char_p".to_owned(),
                to if self.has(to) || matches!(to, Type::Pointer { .. }) => format!("POINTER({})", self.ctype(to)),
                _ => "c_void_p".to_owned(),
            },
            Type::Function(..) => "c_void_p".to_owned(),
            Type::Array(of, length) => format!("{} * {length}", self.ctype(of)),
            Type::Char => panic!("no argument is one"),
        }
    }
}
