//! The resampling of one axis: the elements of the input that an element of the output reads, and
//! their weights.
//!
//! With every filter, positions do not decrease along the output, so that the backward pass can
//! find the outputs that read an element.

use dml_engine::interface::{F32, F64, I32};
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, Pointer, ScalarType, Value};

/// The kind of interpolation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Filter {
    /// The element whose area contains the start of the output's area.
    Nearest,
    /// The element whose area contains the centre of the output's area.
    NearestExact,
    /// Linear between two elements.
    Linear,
    /// Between four elements, cubic convolution with a = -0.75 (Keys, 1981).
    Cubic,
    /// A triangle filter as wide as the output element.
    LinearAntialias,
    /// Cubic convolution with a = -0.5 as wide as the output element.
    CubicAntialias,
}

impl Filter {
    /// Whether the filter's width grows with the scale.
    pub fn antialias(self) -> bool {
        matches!(self, Filter::LinearAntialias | Filter::CubicAntialias)
    }

    /// Whether the output is an element of the input.
    pub fn nearest(self) -> bool {
        matches!(self, Filter::Nearest | Filter::NearestExact)
    }

    /// Number of elements that the filter reads when the axis is not shrunk.
    pub fn taps(self) -> f64 {
        match self {
            Filter::Nearest | Filter::NearestExact => 1.0,
            Filter::Linear | Filter::LinearAntialias => 2.0,
            Filter::Cubic | Filter::CubicAntialias => 4.0,
        }
    }
}

/// An axis on the host.
#[derive(Copy, Clone, Debug)]
pub struct AxisPlan {
    /// Number of elements of the input.
    pub input: i64,
    /// Number of elements of the output.
    pub output: i64,
    /// Input elements for each output element, in the precision of the kernel.
    pub scale: f64,
}

impl AxisPlan {
    /// `given` is the user's scale factor: output elements for each input element. Computed in f32
    /// like the CPU's unless `double`.
    pub fn new(
        filter: Filter,
        align_corners: bool,
        input: i64,
        output: i64,
        given: Option<f64>,
        double: bool,
    ) -> AxisPlan {
        let ratio = |a: i64, b: i64| if double { a as f64 / b as f64 } else { f64::from(a as f32 / b as f32) };
        let scale = match given {
            // If the sizes are equal the axis is copied, whatever the factor.
            _ if filter == Filter::Linear && input == output => 1.0,
            _ if align_corners && output > 1 => ratio(input - 1, output - 1),
            _ if align_corners => 0.0,
            Some(factor) if factor > 0.0 => {
                if double {
                    1.0 / factor
                } else {
                    f64::from((1.0 / factor) as f32)
                }
            }
            _ => ratio(input, output),
        };
        AxisPlan { input, output, scale }
    }

    /// Whether every output is the input element with the same index.
    pub fn identity(&self) -> bool {
        self.input == self.output && self.scale == 1.0
    }

    /// Half the width of an antialiasing filter.
    fn support(&self, filter: Filter) -> f64 {
        filter.taps() * 0.5 * self.scale.max(1.0)
    }

    /// The approximate number of elements that one element of the result combines.
    pub fn window(&self, filter: Filter, backward: bool) -> f64 {
        let width = if filter.antialias() { 2.0 * self.support(filter) } else { filter.taps() };
        if backward { (width / self.scale.max(1e-9)).min(self.output as f64).max(1.0) } else { width }
    }
}

/// The specialisation of an axis.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct AxisSpec {
    /// The interpolation.
    pub filter: Filter,
    /// Whether the centres of corner elements are aligned.
    pub align_corners: bool,
    /// The type in which positions and weights are computed: f32 or f64.
    pub compute: ScalarType,
}

/// Kernel parameter: an axis.
pub struct ResampledAxis;

impl Parameter for ResampledAxis {
    type Type = AxisSpec;
    type Argument<'a> = AxisPlan;
    type Declared<'b> = Axis<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, spec: &AxisSpec) -> Axis<'b> {
        let AxisSpec { filter, align_corners, compute } = *spec;
        let (input, output) = (b.param("input", ScalarType::I32), b.param("output", ScalarType::I32));
        let (scale, inverse) = (b.param("scale", compute), b.param("inverse", compute));
        let width = filter.antialias().then(|| ["support", "shrink"].map(|name| b.param(name, compute)));
        Axis { b, filter, align_corners, input, output, scale, inverse, width, totals: None }
    }

    fn pass(plan: &AxisPlan, spec: &AxisSpec, block: &mut ArgumentBlock) {
        I32::pass(&(plan.input as i32), &(), block);
        I32::pass(&(plan.output as i32), &(), block);
        let mut number = |x: f64| match spec.compute {
            ScalarType::F64 => F64::pass(&x, &(), block),
            _ => F32::pass(&(x as f32), &(), block),
        };
        let inverse = if plan.scale > 0.0 { 1.0 / plan.scale } else { 0.0 };
        number(plan.scale);
        number(inverse);
        if spec.filter.antialias() {
            number(plan.support(spec.filter));
            number(if plan.scale >= 1.0 { inverse } else { 1.0 });
        }
    }
}

/// An axis in a kernel.
#[derive(Copy, Clone)]
pub struct Axis<'b> {
    b: &'b Builder,
    filter: Filter,
    align_corners: bool,
    input: Value<'b>,
    output: Value<'b>,
    scale: Value<'b>,
    inverse: Value<'b>,
    /// Half the width of an antialiasing filter, and the factor of distances.
    width: Option<[Value<'b>; 2]>,
    /// The sums of an antialiasing filter's weights for each output, for the backward pass.
    totals: Option<Pointer<'b>>,
}

/// The elements that an output reads.
pub enum Taps<'b> {
    /// A fixed number of elements with weights; `None` is a weight of 1.
    Fixed(Vec<(Value<'b>, Option<Value<'b>>)>),
    /// A range of elements (first, end), the filter's centre and the sum of its weights.
    Window([Value<'b>; 2], Value<'b>, Value<'b>),
}

impl<'b> Axis<'b> {
    /// The axis with the sums of weights, by which the backward pass divides.
    pub fn with_totals(self, totals: Pointer<'b>) -> Axis<'b> {
        Axis { totals: Some(totals), ..self }
    }

    fn compute(&self) -> ScalarType {
        self.scale.scalar()
    }

    /// Number of elements of the output.
    pub fn outputs(&self) -> Value<'b> {
        self.output
    }

    /// Whether outputs are elements of the input.
    pub fn nearest(&self) -> bool {
        self.filter.nearest()
    }

    /// The element at or before output `o`, at most the last one, and the fraction from there.
    fn source(&self, o: Value<'b>) -> (Value<'b>, Value<'b>) {
        let o = o.cast(self.compute());
        let last = self.input - 1;
        let real = match self.filter {
            Filter::Nearest => self.scale * o,
            _ if self.align_corners => self.scale * o,
            Filter::Cubic => self.scale * (o + 0.5) - 0.5,
            _ => (self.scale * (o + 0.5) - 0.5).max(0.0),
        };
        if self.nearest() {
            let real = if self.filter == Filter::NearestExact { real + 0.5 } else { real };
            // In f32 for every dtype, as on the CPU.
            let index = real.cast(ScalarType::F32).floor().cast(ScalarType::I32).min(last);
            return (index, real);
        }
        let index = real.floor().cast(ScalarType::I32).min(last);
        (index, (real - index.cast(self.compute())).max(0.0).min(1.0))
    }

    /// The elements that output `o` reads and their weights.
    fn neighbours(&self, o: Value<'b>) -> Vec<(Value<'b>, Option<Value<'b>>)> {
        let (index, t) = self.source(o);
        let inside = |x: Value<'b>| x.max(0).min(self.input - 1);
        match self.filter {
            Filter::Nearest | Filter::NearestExact => vec![(index, None)],
            Filter::Linear => vec![(index, Some(1.0 - t)), (inside(index + 1), Some(t))],
            _ => cubic_weights(t).into_iter().zip(-1..).map(|(w, j)| (inside(index + j), Some(w))).collect(),
        }
    }

    /// First and end of the elements in an antialiasing filter's window, and its centre.
    fn window(&self, o: Value<'b>) -> ([Value<'b>; 2], Value<'b>) {
        let center = self.scale * (o.cast(self.compute()) + 0.5);
        let support = self.width.map_or(center, |[support, _]| support);
        let first = (center - support + 0.5).cast(ScalarType::I32).max(0);
        let end = (center + support + 0.5).cast(ScalarType::I32).min(self.input);
        ([first, end], center)
    }

    /// An antialiasing filter's weight of element `i`, before it is divided by the sum of weights.
    pub fn raw_weight(&self, i: Value<'b>, center: Value<'b>) -> Value<'b> {
        let shrink = self.width.map_or(center, |[_, shrink]| shrink);
        let x = ((i.cast(self.compute()) - center + 0.5) * shrink).abs();
        let zero = x.like(0.0);
        if self.filter == Filter::LinearAntialias {
            return x.lt(1.0).select(1.0 - x, zero);
        }
        x.lt(1.0).select(cubic_near(x, -0.5), x.lt(2.0).select(cubic_far(x, -0.5), zero))
    }

    /// The sum of an antialiasing filter's weights for output `o`.
    pub fn total(&self, o: Value<'b>) -> Value<'b> {
        let ([first, end], center) = self.window(o);
        let sum = self.b.var(center.like(0.0));
        self.b.for_(first, end, 1, |i| sum.set(sum.get() + self.raw_weight(i, center)));
        sum.get()
    }

    /// The elements that output `o` reads.
    pub fn taps(&self, o: Value<'b>) -> Taps<'b> {
        if !self.filter.antialias() {
            return Taps::Fixed(self.neighbours(o));
        }
        let (range, center) = self.window(o);
        Taps::Window(range, center, self.total(o))
    }

    /// First and last element that output `o` reads.
    fn extent(&self, o: Value<'b>) -> [Value<'b>; 2] {
        if self.filter.antialias() {
            let ([first, end], _) = self.window(o);
            return [first, end - 1];
        }
        let all = self.neighbours(o);
        [all[0].0, all[all.len() - 1].0]
    }

    /// First and end of the outputs that read element `i`.
    pub fn readers(&self, i: Value<'b>) -> [Value<'b>; 2] {
        let reach = match self.width {
            Some([support, _]) => support + 0.5,
            None => self.scale.like(self.filter.taps() * 0.5 + 0.5),
        };
        // A guess of where the outputs of a position begin, then a linear search.
        let search = |position: Value<'b>, before: &dyn Fn(Value<'b>) -> Value<'b>| {
            let guess = (position * self.inverse).max(0.0).min(self.output.cast(self.compute()));
            let at = self.b.var(guess.cast(ScalarType::I32).min(self.output));
            let step = |by: i32, wanted: &dyn Fn() -> Value<'b>| {
                let more = self.b.var(self.b.bool(true));
                self.b.while_(
                    || more.get(),
                    || {
                        more.set(false);
                        self.b.if_(wanted(), || {
                            at.set(at.get() + by);
                            more.set(true);
                        });
                    },
                );
            };
            let at_most = self.output - 1;
            step(-1, &|| at.get().gt(0) & !before((at.get() - 1).max(0)));
            step(1, &|| at.get().lt(self.output) & before(at.get().min(at_most)));
            at.get()
        };
        let x = i.cast(self.compute());
        let first = search(x - reach + 0.5, &|o| self.extent(o)[1].lt(i));
        let end = search(x + reach + 0.5, &|o| self.extent(o)[0].le(i));
        [first, end]
    }

    /// The weight of element `i` in output `o`, which reads it; `None` if it is 1.
    pub fn weight(&self, o: Value<'b>, i: Value<'b>) -> Option<Value<'b>> {
        if let Some(totals) = self.totals {
            let (_, center) = self.window(o);
            return Some(self.raw_weight(i, center) / totals.load(o.cast(ScalarType::U32)));
        }
        let mut sum: Option<Value> = None;
        for (index, weight) in self.neighbours(o) {
            let weight = weight?;
            let part = index.eq(i).select(weight, 0.0);
            sum = Some(sum.map_or(part, |s| s + part));
        }
        sum
    }
}

/// Keys' cubic for distances up to 1.
fn cubic_near(x: Value<'_>, a: f64) -> Value<'_> {
    ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
}

/// Keys' cubic for distances from 1 to 2.
fn cubic_far(x: Value<'_>, a: f64) -> Value<'_> {
    ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
}

/// Weights of the four elements around a point that is `t` after the second.
pub fn cubic_weights(t: Value<'_>) -> [Value<'_>; 4] {
    let (a, rest) = (-0.75, 1.0 - t);
    [cubic_far(t + 1.0, a), cubic_near(t, a), cubic_near(rest, a), cubic_far(rest + 1.0, a)]
}
