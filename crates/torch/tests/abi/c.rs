//! The interface as a C header.

use crate::read::{Definition, Function, Interface, Named, Type};
use std::fmt::Write as _;

/// `plugin/engine.h`.
pub fn header(interface: &Interface) -> String {
    let mut out = String::new();
    comment(&mut out, "", &[crate::WRITTEN.to_owned()]);
    out.push_str("// clang-format off\n//\n");
    comment(&mut out, "", &interface.docs);
    out.push_str(
        "#pragma once\n#include <stddef.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
    );
    for definition in &interface.definitions {
        if let Definition::Struct { name, is_union, .. } = definition {
            writeln!(out, "typedef {} {name} {name};", keyword(*is_union)).expect("a string");
        }
    }
    for definition in &interface.definitions {
        out.push('\n');
        define(&mut out, definition);
    }
    for section in &interface.sections {
        let mut title = section.docs.clone();
        title[0].insert_str(0, "---- ");
        out.push('\n');
        comment(&mut out, "", &title);
        for function in &section.functions {
            out.push('\n');
            comment(&mut out, "", &function.docs);
            out.push_str(&prototype(function));
        }
    }
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n");
    out
}

fn define(out: &mut String, definition: &Definition) {
    match definition {
        Definition::Constant { docs, name, value } => {
            comment(out, "", docs);
            writeln!(out, "#define DML_{name} {value}u").expect("a string");
        }
        Definition::Enum { docs, name, prefix, values } => {
            comment(out, "", docs);
            writeln!(out, "typedef enum Dml{name} {{").expect("a string");
            for value in values {
                line(out, value, &format!("DML_{prefix}{} = {},", value.name, value.is));
            }
            writeln!(out, "}} Dml{name};").expect("a string");
        }
        Definition::Struct { docs, name, is_union, fields } => {
            comment(out, "", docs);
            writeln!(out, "{} {name} {{", keyword(*is_union)).expect("a string");
            for field in fields {
                let code = match &field.is {
                    Type::Function(inputs, result) => call(&lead(result), &format!("(*{})", field.name), inputs, "  "),
                    of => declare(of, &field.name),
                };
                line(out, field, &format!("{code};"));
            }
            out.push_str("};\n");
        }
    }
}

fn keyword(is_union: bool) -> &'static str {
    if is_union { "union" } else { "struct" }
}

/// A line of an enum or a struct: its comment behind it where there is room, else before it.
fn line<T>(out: &mut String, of: &Named<T>, code: &str) {
    if let [only] = &of.docs[..]
        && code.len() + only.len() < 94
    {
        writeln!(out, "  {code}  // {only}").expect("a string");
    } else {
        comment(out, "  ", &of.docs);
        writeln!(out, "  {code}").expect("a string");
    }
}

fn comment(out: &mut String, indent: &str, lines: &[String]) {
    for line in lines {
        writeln!(out, "{}", format!("{indent}// {line}").trim_end()).expect("a string");
    }
}

fn prototype(function: &Function) -> String {
    format!("{};\n", call(&lead(&function.result), &function.name, &function.arguments, ""))
}

/// A function's declaration: on one line where there is room, else an argument a line.
fn call(result: &str, name: &str, inputs: &[(String, Type)], indent: &str) -> String {
    let whole = format!("{result}{name}({})", arguments(inputs));
    if indent.len() + whole.len() < 100 {
        return whole;
    }
    let each: Vec<String> = inputs.iter().map(|(name, of)| format!("{indent}    {}", declare(of, name))).collect();
    format!("{result}{name}(\n{})", each.join(",\n"))
}

/// A type before a name: `int32_t `, `const char* `.
fn lead(of: &Type) -> String {
    declare(of, "")
}

fn arguments(of: &[(String, Type)]) -> String {
    if of.is_empty() {
        return "void".to_owned();
    }
    of.iter().map(|(name, of)| declare(of, name)).collect::<Vec<_>>().join(", ")
}

/// A declaration of a name.
fn declare(of: &Type, name: &str) -> String {
    match of {
        Type::Void => format!("void {name}"),
        Type::Char => format!("char {name}"),
        Type::Struct(of) => format!("{of} {name}"),
        Type::Number(of) => {
            let of = match of.as_str() {
                "usize" => "size_t".to_owned(),
                "f64" => "double".to_owned(),
                integer if integer.starts_with('u') => format!("uint{}_t", &integer[1..]),
                integer => format!("int{}_t", &integer[1..]),
            };
            format!("{of} {name}")
        }
        Type::Pointer { to, is_const: true } if matches!(**to, Type::Pointer { .. }) => {
            format!("{} const* {name}", lead(to).trim_end())
        }
        Type::Pointer { to, is_const } => {
            let constant = if *is_const { "const " } else { "" };
            format!("{constant}{}* {name}", lead(to).trim_end())
        }
        Type::Array(of, length) => format!("{}[{length}]", declare(of, name)),
        Type::Function(inputs, result) => format!("{}(*{name})({})", lead(result), arguments(inputs)),
    }
}
