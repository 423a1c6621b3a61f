//! How a product finds its way: turned as it suits, then by rows, in plain tiles or on matrix
//! units.

use crate::context::{Context, MatmulPrecision};
use crate::error::Result;
use crate::matmul::choice::{self, Question};
use crate::matmul::gemv;
use crate::matmul::matrix_tile::Units;
use crate::matmul::operand::Axis;
use crate::matmul::problem::Problem;
use crate::matmul::rounding::Rounding;
use crate::matmul::select::Limits;
use crate::matmul::self_test::usable;
use crate::matmul::split::Form;
use dml_kernel::DType;

/// The matrix units that float32 may be multiplied on with this precision, and what it then
/// becomes.
pub fn units_of_terms(cx: &Context, precision: MatmulPrecision) -> Result<Option<(Units, Form)>> {
    let forms: &[Form] = match precision {
        MatmulPrecision::Highest => &[],
        MatmulPrecision::High => &[Form::Halves],
        // As in PyTorch: where there is no fast bfloat16, it is "high".
        MatmulPrecision::Medium => &[Form::Rounded, Form::Halves],
    };
    for &form in forms {
        if let Some(units) = usable(cx, form.dtype())? {
            return Ok(Some((units, form)));
        }
    }
    Ok(None)
}

impl Problem {
    /// Enqueues it, cut up as the table says; float32 is multiplied as such.
    pub fn run(&mut self, cx: &Context) -> Result<()> {
        self.run_with(cx, MatmulPrecision::Highest)
    }

    /// [`run`](Self::run), where float32 may be multiplied with this precision.
    pub fn run_with(&mut self, cx: &Context, precision: MatmulPrecision) -> Result<()> {
        check!(
            self.size.iter().all(|&n| n < i64::from(i32::MAX)),
            Invalid,
            "{}: a product of {:?} (batch, rows, columns, inner) elements is too large",
            cx.name,
            self.size
        );
        let limits = Limits::of(cx.device.info());
        self.orient();
        if self.rounds_to() != [None; 2] {
            self.write_operands(cx, limits)?;
        }
        if self.size[1] <= gemv::MAX_ROWS {
            return self.run_gemv(cx, &limits);
        }
        let question = self.question(cx, limits, precision)?;
        self.run_tuned(cx, question, choice::choose(question))
    }

    /// What its choice depends on.
    pub fn question(&self, cx: &Context, limits: Limits, precision: MatmulPrecision) -> Result<Question> {
        let (units, form) = self.units(cx, precision)?;
        let [_, m, n, k] = self.size;
        Ok(Question {
            limits,
            units,
            form,
            size: self.size,
            bytes: self.a.access.dtype.compute().bytes(),
            long_steps: units.is_some() && form.is_none() && self.a.is_in_units([m, k]) && self.b.is_in_units([n, k]),
            b_along_k: self.b.access.axis == Axis::Inner,
            by_rows: self.is_by_rows(),
            rounding: Rounding { operands: self.rounds_to(), own: cx.device.info().capabilities.converts_halves() },
        })
    }

    /// The matrix units that it may run on, and what its operands then become.
    fn units(&self, cx: &Context, precision: MatmulPrecision) -> Result<(Option<Units>, Option<Form>)> {
        let dtype = self.a.access.factors();
        if self.b.access.factors() != dtype {
            return Ok((None, None));
        }
        if dtype != DType::F32 {
            return Ok((usable(cx, dtype)?, None));
        }
        Ok(units_of_terms(cx, precision)?.unzip())
    }

    /// Exchanges the roles of m and n where that leaves few rows, or else where the result is
    /// contiguous along m.
    pub fn orient(&mut self) {
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
        if let Some(bias) = &mut self.finish.bias {
            bias.strides.swap(1, 2);
        }
    }
}
