use super::verifier::BOOL;
use crate::ir::*;
use crate::types::{ScalarType, Type};
use crate::{Builder, DType};

/// The result of verifying the kernel that `body` writes.
fn verdict(body: impl FnOnce(&Builder)) -> Result<(), String> {
    let b = Builder::new("test", [1, 1, 1]);
    body(&b);
    b.finish().verify().map_err(|invalid| invalid.to_string())
}

#[test]
fn valid_kernels_pass() {
    let passes = verdict(|b| {
        let (out, x) = (b.pointer("out", DType::F32), b.input("x", DType::F16));
        let n = b.param("n", ScalarType::U32);
        let sum = b.var(b.float(ScalarType::F32, 0.0));
        b.for_(0, n, 1, |i| b.if_(x.load(i).gt(0), || sum.set(sum.get() + x.load(i))));
        out.store(0, sum.get());
    });
    assert_eq!(passes, Ok(()));
}

#[test]
fn arithmetic_and_order_of_bools_are_refused() {
    for op in [Binary::Add, Binary::Mul, Binary::Shl, Binary::Min] {
        let result = verdict(|b| {
            let (x, y) = (b.u32(1).eq(2), b.u32(3).eq(4));
            b.def(BOOL, Inst::Binary(op, x.id, y.id));
        });
        assert!(result.is_err_and(|what| what.contains("kernel test is not valid") && what.contains("bool")));
    }
    let result = verdict(|b| {
        let x = b.u32(1).eq(2);
        b.def(BOOL, Inst::Compare(Compare::Lt, x.id, x.id));
    });
    assert!(result.is_err());
}

#[test]
fn each_operand_has_the_type_that_its_instruction_takes() {
    let f32 = Type::scalar(ScalarType::F32);
    let wrong: [fn(&Builder, Type) -> Inst; 9] = [
        |b, _| Inst::Unary(Unary::Not, b.float(ScalarType::F32, 1.0).id),
        |b, _| Inst::Unary(Unary::Neg, b.u32(1).id),
        |b, _| Inst::Binary(Binary::Div, b.float(ScalarType::F32, 1.0).id, b.float(ScalarType::F32, 1.0).id),
        |b, _| Inst::Binary(Binary::Add, b.float(ScalarType::F32, 1.0).id, b.u32(1).id),
        |b, _| Inst::Select(b.u32(1).id, b.float(ScalarType::F32, 1.0).id, b.float(ScalarType::F32, 1.0).id),
        |b, _| Inst::Cast(b.bool(true).id),
        |b, _| Inst::Bitcast(b.float(ScalarType::F64, 1.0).id),
        |b, _| Inst::Fma(b.u32(1).id, b.u32(1).id, b.u32(1).id),
        |b, _| Inst::Subgroup(Subgroup::Add, b.bool(true).id),
    ];
    for make in wrong {
        let result = verdict(|b| {
            b.def(f32, make(b, f32));
        });
        assert!(result.is_err(), "{result:?}");
    }
}

#[test]
fn a_value_is_used_only_where_its_definition_has_run() {
    let result = verdict(|b| {
        let inside = b.var(b.u32(0));
        let mut escaped = None;
        b.if_(b.bool(true), || escaped = Some(inside.get() + 1));
        if let Some(value) = escaped {
            inside.set(value);
        }
    });
    assert!(result.is_err_and(|what| what.contains("used where its definition has not run")));
}

#[test]
fn memory_that_is_not_there_is_refused() {
    let narrow = verdict(|b| {
        let x = b.pointer("x", DType::F16);
        x.store(0, b.float(ScalarType::F32, 1.0));
        b.def(
            Type::scalar(ScalarType::U32),
            Inst::Atomic { op: Atomic::Add, pointer: 0, index: b.u32(0).id, value: b.u32(1).id },
        );
    });
    assert!(narrow.is_err_and(|what| what.contains("u16")));
    assert!(verdict(|b| b.stmt(Stmt::SetVar { var: 3, index: None, value: b.u32(0).id })).is_err());
}
