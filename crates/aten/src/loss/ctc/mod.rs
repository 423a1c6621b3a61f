//! Connectionist temporal classification (A. Graves et al., ICML 2006): the probability of all
//! alignments of a sequence of frames with a shorter sequence of labels.
//!
//! A target of L labels has 2L + 1 states: blanks around the labels. `alpha[t, s]` is the
//! log-probability of all alignments that are in state `s` at frame `t`, and `beta` the same from
//! the end; both are computed by one kernel ([`paths`]), in either direction.

pub mod backward;
pub mod forward;
pub mod problem;
