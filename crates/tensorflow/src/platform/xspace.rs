//! The messages of `xplane.proto`, as far as a device's profile has them, with their field numbers.
//! A field of a `oneof` is an optional field here, which is the same on the wire.
#![allow(missing_docs)]

use std::collections::BTreeMap;

#[derive(Clone, PartialEq, prost::Message)]
pub struct Space {
    #[prost(message, repeated, tag = "1")]
    pub planes: Vec<Plane>,
    #[prost(string, repeated, tag = "3")]
    pub warnings: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Plane {
    #[prost(int64, tag = "1")]
    pub id: i64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, repeated, tag = "3")]
    pub lines: Vec<Line>,
    #[prost(btree_map = "int64, message", tag = "4")]
    pub event_metadata: BTreeMap<i64, Metadata>,
    #[prost(btree_map = "int64, message", tag = "5")]
    pub stat_metadata: BTreeMap<i64, Metadata>,
    #[prost(message, repeated, tag = "6")]
    pub stats: Vec<Stat>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Line {
    #[prost(int64, tag = "1")]
    pub id: i64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int64, tag = "3")]
    pub timestamp_ns: i64,
    #[prost(message, repeated, tag = "4")]
    pub events: Vec<Event>,
    #[prost(int64, tag = "9")]
    pub duration_ps: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Event {
    #[prost(int64, tag = "1")]
    pub metadata_id: i64,
    /// From the line's timestamp on.
    #[prost(int64, optional, tag = "2")]
    pub offset_ps: Option<i64>,
    #[prost(int64, tag = "3")]
    pub duration_ps: i64,
    #[prost(message, repeated, tag = "4")]
    pub stats: Vec<Stat>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Stat {
    #[prost(int64, tag = "1")]
    pub metadata_id: i64,
    #[prost(uint64, optional, tag = "3")]
    pub uint64: Option<u64>,
    #[prost(string, optional, tag = "5")]
    pub text: Option<String>,
}

/// `XEventMetadata` and `XStatMetadata`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Metadata {
    #[prost(int64, tag = "1")]
    pub id: i64,
    #[prost(string, tag = "2")]
    pub name: String,
}
