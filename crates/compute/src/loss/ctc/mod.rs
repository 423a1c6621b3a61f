//! Connectionist temporal classification (A. Graves et al., ICML 2006): the probability of all ways
//! in which a sequence of frames can spell a shorter sequence of labels.
//!
//! A target of L labels has 2L + 1 states: blanks around the labels. `alpha[t, s]` is the
//! log-probability of all ways to be in state `s` at frame `t`, and `beta` the same from the end;
//! both are one kernel ([`paths`]), read from either side.

pub mod backward;
pub mod forward;
pub mod paths;
pub mod problem;
pub mod states;
