//! The engine's activities as TensorFlow's profile: a plane for each device, with one line, as the
//! device has one queue.

use super::xspace::{Event, Line, Metadata, Plane, Space, Stat};
use dml_engine::{Activity, Work};
use std::collections::BTreeMap;

/// Numbers for names, from 1 on.
#[derive(Default)]
struct Names(BTreeMap<String, i64>);

impl Names {
    fn number(&mut self, name: &str) -> i64 {
        let next = self.0.len() as i64 + 1;
        *self.0.entry(name.to_owned()).or_insert(next)
    }

    fn metadata(self) -> BTreeMap<i64, Metadata> {
        self.0.into_iter().map(|(name, id)| (id, Metadata { id, name })).collect()
    }

    fn amount(&mut self, name: &str, value: u64) -> Stat {
        Stat { metadata_id: self.number(name), uint64: Some(value), text: None }
    }

    fn text(&mut self, name: &str, text: String) -> Stat {
        Stat { metadata_id: self.number(name), uint64: None, text: Some(text) }
    }
}

/// What an activity did, under the names that TensorFlow's tools know.
fn stats(names: &mut Names, activity: &Activity) -> Vec<Stat> {
    let list = |numbers: [u32; 3]| numbers.map(|n| n.to_string()).join(",");
    let details = match &activity.work {
        Work::Kernel(kernel, groups) => {
            let text = format!("grid:{} block:{}", list(*groups), list(kernel.workgroup_size()));
            names.text("kernel_details", text)
        }
        Work::Replay(launches) => names.text("kernel_details", format!("launches:{launches}")),
        Work::Upload => names.text("memcpy_details", format!("kind:HtoD size:{}", activity.bytes_written)),
        Work::Download => names.text("memcpy_details", format!("kind:DtoH size:{}", activity.bytes_read)),
    };
    vec![
        // The tools want `name:type`. A kernel does not know its node's name.
        names.text("tf_op", format!("{0}:{0}", activity.operator)),
        details,
        names.amount("bytes_read", activity.bytes_read),
        names.amount("bytes_written", activity.bytes_written),
    ]
}

/// Picoseconds from one time in nanoseconds to another.
fn picoseconds(from: u64, to: u64) -> i64 {
    (to.saturating_sub(from) * 1000) as i64
}

/// The plane of a device. TensorFlow's tools know it by its name.
fn plane(device: usize, activities: &[&Activity]) -> Plane {
    let (mut events, mut stat_names) = (Names::default(), Names::default());
    let start = activities.iter().map(|activity| activity.ran_ns[0]).min().unwrap_or(0);
    let end = activities.iter().map(|activity| activity.ran_ns[1]).max().unwrap_or(start);
    let mut event = |activity: &&Activity| Event {
        metadata_id: events.number(activity.name()),
        offset_ps: Some(picoseconds(start, activity.ran_ns[0])),
        duration_ps: picoseconds(activity.ran_ns[0], activity.ran_ns[1]),
        stats: stats(&mut stat_names, activity),
    };
    let line = Line {
        id: 0,
        name: "Stream #0(Compute)".to_owned(),
        timestamp_ns: start as i64,
        events: activities.iter().map(&mut event).collect(),
        duration_ps: picoseconds(start, end),
    };
    Plane {
        id: device as i64,
        name: format!("/device:GPU:{device}"),
        lines: vec![line],
        event_metadata: events.metadata(),
        stat_metadata: stat_names.metadata(),
        stats: Vec::new(),
    }
}

/// The profile of all devices that did something.
pub fn space(activities: &[Activity], warnings: Vec<String>) -> Space {
    let mut of_devices: BTreeMap<usize, Vec<&Activity>> = BTreeMap::new();
    for activity in activities {
        of_devices.entry(activity.device).or_default().push(activity);
    }
    let planes = of_devices.iter().map(|(device, activities)| plane(*device, activities)).collect();
    Space { planes, warnings }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    fn upload(device: usize, ran_ns: [u64; 2]) -> Activity {
        Activity {
            device,
            work: Work::Upload,
            operator: "copy",
            bytes_read: 0,
            bytes_written: 4,
            correlation: 0,
            enqueued_ns: [1, 2],
            ran_ns,
        }
    }

    #[test]
    fn each_device_has_a_plane_with_times_from_its_first_activity_on() {
        let activities = [upload(1, [50, 60]), upload(0, [10, 12]), upload(0, [17, 20])];
        let space = space(&activities, vec!["one".to_owned()]);
        let written = Space::decode(space.encode_to_vec().as_slice()).expect("what was written");
        assert_eq!(written, space);
        let names: Vec<_> = space.planes.iter().map(|plane| plane.name.as_str()).collect();
        assert_eq!(names, ["/device:GPU:0", "/device:GPU:1"]);
        let line = &space.planes[0].lines[0];
        assert_eq!((line.timestamp_ns, line.duration_ps), (10, 10_000));
        let times: Vec<_> = line.events.iter().map(|event| (event.offset_ps, event.duration_ps)).collect();
        assert_eq!(times, [(Some(0), 2000), (Some(7000), 3000)]);
        assert_eq!(space.planes[0].event_metadata[&line.events[0].metadata_id].name, "upload");
        let stats = &space.planes[0].stat_metadata;
        let texts: Vec<_> = line.events[0].stats.iter().map(|stat| stats[&stat.metadata_id].name.as_str()).collect();
        assert_eq!(texts, ["tf_op", "memcpy_details", "bytes_read", "bytes_written"]);
    }

    #[test]
    fn a_device_that_did_nothing_has_no_plane() {
        assert!(space(&[], Vec::new()).planes.is_empty());
    }
}
