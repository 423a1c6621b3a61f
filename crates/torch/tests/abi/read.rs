//! Reads the interface from the crate's sources.

use std::path::Path;
use syn::{Attribute, Expr, Fields, FnArg, Item, Lit, Meta, Pat, ReturnType, Visibility};

/// The files with functions, in the order of their sections.
const SECTIONS: [&str; 12] = [
    "error",
    "operators",
    "device",
    "child_query",
    "memory",
    "pinned",
    "generator",
    "graph",
    "kernel",
    "event",
    "profile",
    "measure",
];

/// The whole interface.
pub struct Interface {
    /// The contract.
    pub docs: Vec<String>,
    pub definitions: Vec<Definition>,
    pub sections: Vec<Section>,
}

/// A constant or a type.
pub enum Definition {
    Constant {
        docs: Vec<String>,
        name: String,
        value: u64,
    },
    /// Named numbers. In C each name begins with `prefix`.
    Enum {
        docs: Vec<String>,
        name: String,
        prefix: String,
        values: Vec<Named<u64>>,
    },
    Struct {
        docs: Vec<String>,
        name: String,
        is_union: bool,
        fields: Vec<Named<Type>>,
    },
}

/// A value of an enum, or a field.
pub struct Named<T> {
    pub docs: Vec<String>,
    pub name: String,
    pub is: T,
}

/// The functions of a file.
pub struct Section {
    pub docs: Vec<String>,
    pub functions: Vec<Function>,
}

pub struct Function {
    pub docs: Vec<String>,
    pub name: String,
    pub arguments: Vec<(String, Type)>,
    pub result: Type,
}

/// A type of the interface.
#[derive(Clone)]
pub enum Type {
    Void,
    Char,
    /// An integer or a float, by Rust's name.
    Number(String),
    Struct(String),
    Pointer {
        to: Box<Type>,
        is_const: bool,
    },
    Array(Box<Type>, usize),
    Function(Vec<(String, Type)>, Box<Type>),
}

impl Interface {
    /// The interface that the sources in a folder declare.
    pub fn read(folder: &Path) -> Self {
        let file = |name: &str| {
            let path = folder.join(name).with_extension("rs");
            let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .expect("sources")
            .map(|entry| entry.expect("sources").path().file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        files.sort_unstable();
        for name in files.iter().filter(|name| !SECTIONS.contains(&name.as_str())) {
            assert!(functions(&file(name).items).is_empty(), "{name}.rs has functions and is not in SECTIONS");
        }
        let section = |name: &&str| {
            let file = file(name);
            Section { docs: docs(&file.attrs), functions: functions(&file.items) }
        };
        Self {
            docs: docs(&file("lib").attrs),
            definitions: file("abi").items.iter().filter_map(definition).collect(),
            sections: SECTIONS.iter().map(section).collect(),
        }
    }
}

fn functions(items: &[Item]) -> Vec<Function> {
    let exported = items.iter().filter_map(|item| match item {
        Item::Fn(function) if function.sig.ident.to_string().starts_with("dml_") => Some(function),
        _ => None,
    });
    let read = exported.map(|function| {
        let argument = |argument: &FnArg| match argument {
            FnArg::Typed(typed) => match &*typed.pat {
                Pat::Ident(name) => (name.ident.to_string(), type_of(&typed.ty)),
                _ => panic!("an argument without a name"),
            },
            FnArg::Receiver(_) => panic!("a method"),
        };
        Function {
            docs: docs(&function.attrs),
            name: function.sig.ident.to_string(),
            arguments: function.sig.inputs.iter().map(argument).collect(),
            result: result(&function.sig.output),
        }
    });
    read.collect()
}

fn definition(item: &Item) -> Option<Definition> {
    let public = |visibility: &Visibility| matches!(visibility, Visibility::Public(_));
    match item {
        Item::Const(constant) if public(&constant.vis) => Some(Definition::Constant {
            docs: docs(&constant.attrs),
            name: constant.ident.to_string(),
            value: number(&constant.expr),
        }),
        Item::Mod(module) => Some(Definition::Enum {
            docs: docs(&module.attrs),
            name: camel(&module.ident.to_string()),
            prefix: format!("{}_", module.ident.to_string().to_uppercase()),
            values: module.content.iter().flat_map(|(_, items)| items).map(constant).collect(),
        }),
        Item::Enum(of) => Some(Definition::Enum {
            docs: docs(&of.attrs),
            name: of.ident.to_string(),
            prefix: String::new(),
            values: of
                .variants
                .iter()
                .map(|variant| Named {
                    docs: docs(&variant.attrs),
                    name: upper(&variant.ident.to_string()),
                    is: number(&variant.discriminant.as_ref().expect("a number").1),
                })
                .collect(),
        }),
        Item::Struct(of) => Some(Definition::Struct {
            docs: docs(&of.attrs),
            name: of.ident.to_string(),
            is_union: false,
            fields: match &of.fields {
                Fields::Named(named) => fields(named),
                _ => panic!("{} has no named fields", of.ident),
            },
        }),
        Item::Union(of) => Some(Definition::Struct {
            docs: docs(&of.attrs),
            name: of.ident.to_string(),
            is_union: true,
            fields: fields(&of.fields),
        }),
        _ => None,
    }
}

fn constant(item: &Item) -> Named<u64> {
    let Item::Const(constant) = item else { panic!("a module of constants has something else") };
    Named { docs: docs(&constant.attrs), name: constant.ident.to_string(), is: number(&constant.expr) }
}

fn fields(named: &syn::FieldsNamed) -> Vec<Named<Type>> {
    let field = |field: &syn::Field| Named {
        docs: docs(&field.attrs),
        name: field.ident.as_ref().expect("a named field").to_string(),
        is: type_of(&field.ty),
    };
    named.named.iter().map(field).collect()
}

fn result(output: &ReturnType) -> Type {
    match output {
        ReturnType::Default => Type::Void,
        ReturnType::Type(_, of) => type_of(of),
    }
}

fn type_of(of: &syn::Type) -> Type {
    match of {
        syn::Type::Ptr(pointer) => {
            Type::Pointer { to: Box::new(type_of(&pointer.elem)), is_const: pointer.mutability.is_none() }
        }
        syn::Type::Array(array) => Type::Array(Box::new(type_of(&array.elem)), number(&array.len) as usize),
        syn::Type::BareFn(function) => {
            let argument = |argument: &syn::BareFnArg| {
                let name = argument.name.as_ref().map_or_else(String::new, |(name, _)| name.to_string());
                (name, type_of(&argument.ty))
            };
            Type::Function(function.inputs.iter().map(argument).collect(), Box::new(result(&function.output)))
        }
        syn::Type::Path(path) => {
            let last = path.path.segments.last().expect("a name");
            match last.ident.to_string().as_str() {
                "c_void" => Type::Void,
                "c_char" => Type::Char,
                "AtomicU32" => Type::Number("u32".to_owned()),
                // A function that may be null.
                "Option" => match &last.arguments {
                    syn::PathArguments::AngleBracketed(of) => match of.args.first() {
                        Some(syn::GenericArgument::Type(of)) => type_of(of),
                        _ => panic!("an Option of what?"),
                    },
                    _ => panic!("an Option of what?"),
                },
                number @ ("u8" | "i32" | "u32" | "i64" | "u64" | "usize" | "f64") => Type::Number(number.to_owned()),
                name => Type::Struct(name.to_owned()),
            }
        }
        _ => panic!("a type that C has not"),
    }
}

fn number(of: &Expr) -> u64 {
    match of {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().expect("a number"),
            _ => panic!("a constant that is no number"),
        },
        _ => panic!("a constant that is computed"),
    }
}

/// The lines of a doc comment.
fn docs(attributes: &[Attribute]) -> Vec<String> {
    let line = |attribute: &Attribute| {
        let Meta::NameValue(pair) = &attribute.meta else { return None };
        let Expr::Lit(literal) = &pair.value else { return None };
        let Lit::Str(text) = &literal.lit else { return None };
        let text = text.value();
        pair.path.is_ident("doc").then(|| text.strip_prefix(' ').unwrap_or(&text).trim_end().to_owned())
    };
    attributes.iter().filter_map(line).collect()
}

/// `tensor_flag` as `TensorFlag`.
fn camel(name: &str) -> String {
    let word = |word: &str| format!("{}{}", word[..1].to_uppercase(), &word[1..]);
    name.split('_').map(word).collect()
}

/// `OutOfMemory` as `OUT_OF_MEMORY`.
fn upper(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_uppercase());
    }
    out
}
