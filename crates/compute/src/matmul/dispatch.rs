//! Execution of a product: orientation, then by rows, in tiles, or on matrix units.

use crate::context::{Context, MatmulPrecision};
use crate::error::Result;
use crate::matmul::choice::{self, ChoiceKey};
use crate::matmul::gemv;
use crate::matmul::matrix_unit_tile::Units;
use crate::matmul::operand::Axis;
use crate::matmul::problem::Problem;
use crate::matmul::rounding::Rounding;
use crate::matmul::select::{self, Limits};
use crate::matmul::self_test::usable_units;
use crate::matmul::split::Form;
use crate::primitives::registers::Loads;
use dml_engine::Verdict;
use dml_kernel::DType;

/// The matrix units for float32 with this precision, and the format to which operands are
/// converted.
pub fn matrix_units_of_terms(cx: &Context, precision: MatmulPrecision) -> Result<Option<(Units, Form)>> {
    let forms: &[Form] = match precision {
        MatmulPrecision::Highest => &[],
        MatmulPrecision::High => &[Form::Halves],
        // Without fast bfloat16, "medium" is "high".
        MatmulPrecision::Medium => &[Form::Rounded, Form::Halves],
    };
    for &form in forms {
        if let Some(matrix_units) = usable_units(cx, form.dtype())? {
            return Ok(Some((matrix_units, form)));
        }
    }
    Ok(None)
}

impl Problem {
    /// Enqueues the product with the algorithm from the cost model; float32 is multiplied in full
    /// precision.
    pub fn run(&mut self, cx: &Context) -> Result<()> {
        self.run_with_precision(cx, MatmulPrecision::Highest)
    }

    /// [`run`](Self::run) with this precision of float32.
    pub fn run_with_precision(&mut self, cx: &Context, precision: MatmulPrecision) -> Result<()> {
        check!(
            self.size.iter().all(|&n| n < i64::from(i32::MAX)),
            Invalid,
            "{}: a product of {:?} (batch, rows, columns, inner) elements is too large",
            cx.name,
            self.size
        );
        let limits = Limits::of(cx.device.info());
        self.swap_operands_if_better();
        if self.rounds_to() != [None; 2] {
            self.write_operands(cx, limits)?;
        }
        let by_vectors = |cx: &Context| self.run_gemv(cx, &limits);
        if self.size[1] <= gemv::MAX_ROWS && cx.run_if_accepted(Verdict::Unoptimised, by_vectors)? {
            return Ok(());
        }
        let choice_key = self.choice_key(cx, limits, precision)?;
        let (choice_key, algorithm) = cx.accepted(
            (choice_key, choice::choose(choice_key)),
            |(key, algorithm)| choice::smaller(key, algorithm),
            |cx, (_, algorithm)| self.run_in(cx, algorithm),
        )?;
        self.run_with_tuning(cx, choice_key, algorithm)
    }

    /// The limits for the loads of these operands.
    pub fn limits_of_loads(&self, limits: Limits) -> Limits {
        let loads = self.a.access.loads().max(self.b.access.loads());
        let is_whole = self.size[3] % i64::from(select::STEP) == 0;
        Limits { loads: if is_whole { loads } else { loads.max(Loads::VectorsToEnd) }, ..limits }
    }

    /// The inputs of the choice.
    pub fn choice_key(&self, cx: &Context, limits: Limits, precision: MatmulPrecision) -> Result<ChoiceKey> {
        let limits = self.limits_of_loads(limits);
        let (matrix_units, form) = self.matrix_units(cx, precision)?;
        let [_, m, n, k] = self.size;
        Ok(ChoiceKey {
            limits,
            matrix_units,
            form,
            size: self.size,
            bytes: self.a.access.dtype.compute().bytes(),
            prefers_long_steps: matrix_units.is_some()
                && form.is_none()
                && self.a.has_vector_loads([m, k])
                && self.b.has_vector_loads([n, k]),
            b_along_k: self.b.access.axis == Axis::Inner,
            by_rows: self.is_by_rows(),
            rounding: Rounding { operands: self.rounds_to(), own: cx.device.info().capabilities.converts_halves() },
        })
    }

    /// The matrix units that may be used, and the format to which operands are converted.
    fn matrix_units(&self, cx: &Context, precision: MatmulPrecision) -> Result<(Option<Units>, Option<Form>)> {
        let dtype = self.a.access.factors();
        if self.b.access.factors() != dtype {
            return Ok((None, None));
        }
        if dtype != DType::F32 {
            return Ok((usable_units(cx, dtype)?, None));
        }
        Ok(matrix_units_of_terms(cx, precision)?.unzip())
    }

    /// Exchanges the roles of m and n if that makes a product with few rows, or else if the result
    /// is contiguous along m.
    pub fn swap_operands_if_better(&mut self) {
        let s = self.finish.out.strides;
        let [batch, m, n, k] = self.size;
        let few = |rows: i64| rows <= gemv::MAX_ROWS;
        let turned = if few(m) || few(n) { n < m } else { s[2] != 1 && s[1] == 1 };
        if self.finish.out.split.is_some() || !turned {
            return;
        }
        self.size = [batch, n, m, k];
        std::mem::swap(&mut self.a, &mut self.b);
        self.finish.out.strides.swap(1, 2);
        for tensor in self.finish.read_mut() {
            tensor.strides.swap(1, 2);
        }
    }
}
