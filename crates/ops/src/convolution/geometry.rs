//! The shape of a convolution, checked, and what each of its three products looks like.

use crate::check;
use crate::operator::error::Result;
use crate::tensor::{Dims, Tensor};
use smallvec::SmallVec;

/// One value a spatial dimension.
pub type Spatial = SmallVec<[i64; 3]>;

/// A convolution from `input` to `output` channels over 1, 2 or 3 spatial dimensions. A transposed convolution is the
/// same one with the roles of its input and its result exchanged.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Images.
    pub batch: i64,
    /// Groups of channels that do not see each other.
    pub groups: i64,
    /// Channels of the larger side (of a plain convolution's input) in one group, and its spatial sizes.
    pub inner: (i64, Spatial),
    /// Channels of the other side (of a plain convolution's result) in one group, and its spatial sizes.
    pub outer: (i64, Spatial),
    /// Spatial sizes of the weight.
    pub kernel: Spatial,
    /// Steps of the window over the inner side.
    pub stride: Spatial,
    /// Zeros around the inner side.
    pub padding: Spatial,
    /// Steps between the window's elements.
    pub dilation: Spatial,
    /// The operator is the transposed one: it goes from the outer side to the inner.
    pub transposed: bool,
}

/// The arguments of an operator that describe its convolution.
pub struct Arguments<'a> {
    /// Step of the window.
    pub stride: &'a [i64],
    /// Zeros around the input.
    pub padding: &'a [i64],
    /// Steps between the window's elements.
    pub dilation: &'a [i64],
    /// Whether it is a transposed convolution.
    pub transposed: bool,
    /// Added to one side of a transposed convolution's result.
    pub output_padding: &'a [i64],
    /// Groups of channels.
    pub groups: i64,
}

impl Geometry {
    /// The convolution of `input` by `weight`.
    pub fn new(input: &Tensor, weight: &Tensor, args: &Arguments) -> Result<Geometry> {
        let rank = input.dim().saturating_sub(2);
        check!(
            (1..=3).contains(&rank) && weight.dim() == input.dim(),
            Runtime,
            "Expected {}-dimensional input for {}-dimensional weight {:?}, but got {}-dimensional input of size {:?} \
             instead",
            weight.dim(),
            weight.dim(),
            weight.sizes.as_slice(),
            input.dim(),
            input.sizes.as_slice()
        );
        let per_dim = |list: &[i64]| -> Spatial {
            (0..rank).map(|d| list.get(d).or(list.first()).copied().unwrap_or(0)).collect()
        };
        let [stride, padding, dilation, extra] =
            [args.stride, args.padding, args.dilation, args.output_padding].map(per_dim);
        check!(stride.iter().all(|&s| s > 0), Runtime, "non-positive stride is not supported");
        check!(padding.iter().all(|&p| p >= 0), Runtime, "negative padding is not supported");
        check!(dilation.iter().all(|&d| d > 0), Runtime, "dilation should be greater than zero");
        check!(args.groups > 0, Runtime, "non-positive groups is not supported");
        let small = !args.transposed || (0..rank).all(|d| extra[d] < stride[d] || extra[d] < dilation[d]);
        check!(
            small,
            Runtime,
            "output padding must be smaller than either stride or dilation, but got {} {} {}",
            listed("output_padding", &extra, 0),
            listed("stride", &stride, 1),
            listed("dilation", &dilation, 1)
        );
        let (groups, transposed) = (args.groups, args.transposed);
        let channels = input.sizes[1];
        let expected = if transposed { weight.sizes[0] } else { weight.sizes[1] * groups };
        check!(
            channels == expected && weight.sizes[0] % groups == 0,
            Runtime,
            "Given groups={groups}, weight of size {:?}, expected input{:?} to have {expected} channels, but got \
             {channels} channels instead",
            weight.sizes.as_slice(),
            input.sizes.as_slice()
        );
        let kernel: Spatial = weight.sizes[2..].iter().copied().collect();
        let here: Spatial = input.sizes[2..].iter().copied().collect();
        let window = |d: usize| dilation[d] * (kernel[d] - 1) + 1;
        let there: Spatial = (0..rank)
            .map(|d| {
                if transposed {
                    (here[d] - 1) * stride[d] - 2 * padding[d] + window(d) + extra[d]
                } else {
                    let room = here[d] + 2 * padding[d] - window(d);
                    if room < 0 { 0 } else { room / stride[d] + 1 }
                }
            })
            .collect();
        check!(
            !transposed || there.iter().all(|&n| n > 0),
            Runtime,
            "Given input size per channel: ({}). Calculated output size per channel: ({}). Output size is too small",
            crossed(here.iter().copied()),
            crossed(there.iter().copied())
        );
        check!(
            there.iter().all(|&n| n > 0),
            Runtime,
            "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than \
             actual input size",
            crossed((0..rank).map(|d| here[d] + 2 * padding[d])),
            crossed((0..rank).map(window))
        );
        let (first, second) = (weight.sizes[0] / groups, weight.sizes[1]);
        let (inner, outer) = if transposed { (there, here) } else { (here, there) };
        Ok(Geometry {
            batch: input.sizes[0],
            groups,
            inner: (second, inner),
            outer: (first, outer),
            kernel,
            stride,
            padding,
            dilation,
            transposed,
        })
    }

    /// Whether every window is one pixel, and each pixel has one.
    pub fn is_pointwise(&self) -> bool {
        let all = |values: &[i64], x: i64| values.iter().all(|&n| n == x);
        all(&self.kernel, 1) && all(&self.stride, 1) && all(&self.padding, 0)
    }

    /// Sizes of the operator's result.
    pub fn result(&self) -> Dims {
        let (channels, spatial) = if self.transposed { &self.inner } else { &self.outer };
        let mut sizes = Dims::from_slice(&[self.batch, channels * self.groups]);
        sizes.extend_from_slice(spatial);
        sizes
    }
}

/// Values as the CPU names them: those of a single spatial dimension are the width, beside a height of `height`.
fn listed(name: &str, values: &[i64], height: i64) -> String {
    let mut values = Spatial::from_slice(values);
    if values.len() == 1 {
        values.insert(0, height);
    }
    let axes = &["depth", "height", "width"][3 - values.len()..];
    axes.iter().zip(values).map(|(axis, n)| format!("{name}_{axis}: {n}")).collect::<Vec<_>>().join(" ")
}

fn crossed(sizes: impl Iterator<Item = i64>) -> String {
    sizes.map(|n| n.to_string()).collect::<Vec<_>>().join(" x ")
}
