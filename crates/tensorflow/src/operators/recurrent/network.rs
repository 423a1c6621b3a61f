//! What a node says of its network, and the sizes that its inputs have.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::Call;
use crate::require;
use dml_compute::View;
use dml_compute::recurrent::gates::Cell;

/// How the version of an operator differs from the others.
#[derive(Copy, Clone)]
pub struct Version {
    /// The operator returns or takes `host_reserved`: from version 2 on.
    pub has_host_reserved: bool,
    /// It takes the lengths of the sequences, in either order: version 3.
    pub has_lengths: bool,
}

/// The versions 1 to 3.
pub const VERSIONS: [Version; 3] = [
    Version { has_host_reserved: false, has_lengths: false },
    Version { has_host_reserved: true, has_lengths: false },
    Version { has_host_reserved: true, has_lengths: true },
];

/// The attributes of a node.
pub struct Network {
    /// The kind of its cells.
    pub cell: Cell,
    /// 2 if sequences are also read from their ends, else 1.
    pub directions: i64,
    /// Whether the first dimension is time.
    pub time_major: bool,
    input_mode: String,
    /// The share of numbers that are dropped between layers in training.
    pub dropout: f32,
}

impl Network {
    /// Reads the attributes.
    pub fn new(attributes: &Attributes, version: Version) -> Result<Self> {
        let mode = attributes.string("rnn_mode")?;
        let cell = match mode.as_str() {
            "lstm" => Cell::Lstm,
            "gru" => Cell::Gru,
            "rnn_tanh" => Cell::Tanh,
            "rnn_relu" => Cell::Relu,
            _ => return Err(Error::InvalidArgument(format!("Invalid RNN mode: {mode}"))),
        };
        if attributes.has("num_proj")? && attributes.int("num_proj")? > 0 {
            return Err(Error::Unimplemented("a recurrent network with a projection".to_owned()));
        }
        let dropout = attributes.float("dropout")?;
        require!((0.0..=1.0).contains(&dropout), "Invalid dropout: {dropout}");
        Ok(Self {
            cell,
            directions: if attributes.string("direction")? == "bidirectional" { 2 } else { 1 },
            time_major: !version.has_lengths || attributes.bool("time_major")?,
            input_mode: attributes.string("input_mode")?,
            dropout,
        })
    }

    /// Whether numbers are dropped between the layers of a network that trains.
    pub fn drops(&self, sizes: &Sizes) -> bool {
        self.dropout > 0.0 && sizes.layers > 1
    }

    /// The numbers that a network keeps for its gradient: what each layer keeps, and the factors of
    /// dropout between layers.
    pub fn kept(&self, sizes: &Sizes) -> i64 {
        let factors = if self.drops(sizes) { (sizes.layers - 1) * self.wide(sizes) * sizes.rows() } else { 0 };
        sizes.layers * self.directions * sizes.kept(self.cell) + factors
    }

    /// The factors of dropout before a layer, `[rows, directions * hidden]`, in what is kept.
    pub fn factors(&self, sizes: &Sizes, reserve: &View, layer: i64) -> View {
        let (rows, wide) = (sizes.rows(), self.wide(sizes));
        let start = sizes.layers * self.directions * sizes.kept(self.cell) + (layer - 1) * rows * wide;
        reserve.as_strided(&[rows, wide], &[wide, 1], start)
    }

    /// The states of a layer in all directions.
    fn wide(&self, sizes: &Sizes) -> i64 {
        self.directions * sizes.hidden
    }

    /// Refuses what is not computed, of a network of these sizes.
    pub fn check(&self, sizes: &Sizes) -> Result<()> {
        let skips = match self.input_mode.as_str() {
            "skip_input" => true,
            "auto_select" => sizes.width == sizes.hidden,
            _ => false,
        };
        if skips {
            return Err(Error::Unimplemented(format!("a recurrent network with input_mode {}", self.input_mode)));
        }
        Ok(())
    }

    /// A tensor of states or of sequences with time, or layers, as its first dimension.
    pub fn major(&self, t: &View) -> View {
        if self.time_major { t.clone() } else { t.transpose(0, 1) }
    }

    /// The sizes of such a tensor as TensorFlow has it.
    pub fn own(&self, [first, second, third]: [i64; 3]) -> [i64; 3] {
        if self.time_major { [first, second, third] } else { [second, first, third] }
    }
}

/// The sizes of a network and its sequences.
#[derive(Copy, Clone)]
pub struct Sizes {
    /// The layers.
    pub layers: i64,
    /// The steps of the longest sequence.
    pub time: i64,
    /// The sequences.
    pub batch: i64,
    /// The numbers of an input's step.
    pub width: i64,
    /// The units of a layer in one direction.
    pub hidden: i64,
}

impl Sizes {
    /// Of the inputs, and of the states at the beginning.
    pub fn of(call: &Call, network: &Network, [input, h]: [&View; 2]) -> Result<Self> {
        require!(input.dim() == 3, "RNN input must be a 3-D vector: {:?}", input.sizes);
        require!(h.dim() == 3, "RNN input_h must be a 3-D vector: {:?}", h.sizes);
        let (input, h) = (network.major(input), network.major(h));
        let sizes = Self {
            layers: h.sizes[0] / network.directions,
            time: input.sizes[0],
            batch: input.sizes[1],
            width: input.sizes[2],
            hidden: h.sizes[2],
        };
        require!(
            h.sizes[1] == sizes.batch && h.sizes[0] == sizes.layers * network.directions && sizes.layers > 0,
            "Invalid input_h shape: {:?}, for input {:?}",
            h.sizes,
            input.sizes
        );
        require!(
            sizes.time > 0 && sizes.width > 0 && sizes.hidden > 0,
            "{}: sequences without steps, inputs or units: {:?}, {:?}",
            call.operator(),
            input.sizes,
            h.sizes
        );
        require!(
            sizes.hidden < 1 << 20 && sizes.batch * sizes.time < 1 << 31,
            "{}: too large: {:?}, {:?}",
            call.operator(),
            input.sizes,
            h.sizes
        );
        Ok(sizes)
    }

    /// Steps of all sequences.
    pub fn rows(&self) -> i64 {
        self.time * self.batch
    }

    /// The numbers that a layer in one direction keeps for its gradient: its states, and what a
    /// cell saves.
    pub fn kept(&self, cell: Cell) -> i64 {
        self.rows() * self.hidden * (1 + i64::from(cell.saved_values()))
    }

    /// What is kept of the layer in one direction with this number: `[rows, hidden]`, and
    /// `[rows, saved values * hidden]`.
    pub fn kept_by(&self, reserve: &View, cell: Cell, layer: i64) -> [View; 2] {
        let (start, states) = (layer * self.kept(cell), self.rows() * self.hidden);
        let wide = i64::from(cell.saved_values()) * self.hidden;
        [
            reserve.as_strided(&[self.rows(), self.hidden], &[self.hidden, 1], start),
            reserve.as_strided(&[self.rows(), wide], &[wide, 1], start + states),
        ]
    }
}
