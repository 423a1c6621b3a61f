//! The mapping from the lanes of a subgroup to the elements of a matrix register.

use crate::builder::{Builder, Value};

/// The most bits of the index of a lane or of a component.
const BITS: usize = 8;

/// The row and the column of each component of each lane. Every bit of a lane's index, and of a
/// component's index, is one bit of the element's row or of its column. All known matrix units have
/// such a mapping; a driver does not report it, but a kernel can measure it. (These mappings are
/// the simplest of the linear layouts of Zhou et al., "Linear layouts: robust code generation of
/// efficient tensor computation using F2", 2025.)
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ComponentMap {
    lane_bits: u8,
    component_bits: u8,
    /// For each bit of a lane's index, its row and its column, one of which is 0.
    lane: [[u8; 2]; BITS],
    /// The same for the bits of a component's index.
    component: [[u8; 2]; BITS],
}

impl ComponentMap {
    /// The mapping of NVIDIA's matrix units for 32 lanes, and of emulated matrices for any number
    /// of lanes from 4 on: four neighbouring lanes share a row, and each of them has pairs of
    /// neighbouring elements.
    ///
    /// # Panics
    /// Unless all numbers are powers of two, columns are 8 or more, and lanes are 4 or more and at
    /// most four times the rows.
    pub fn quads(rows: u32, columns: u32, lanes: u32) -> ComponentMap {
        assert!([rows, columns, lanes].iter().all(|x| x.is_power_of_two()) && columns >= 8, "a matrix in quads");
        assert!((4..=4 * rows).contains(&lanes), "a matrix of {rows} rows has no quads for {lanes} lanes");
        let across = lanes / 4;
        let lane = [[0, 2], [0, 4]].into_iter().chain(bits(1, across).map(|row| [row, 0]));
        let component = [[0, 1]]
            .into_iter()
            .chain(bits(across, rows).map(|row| [row, 0]))
            .chain(bits(8, columns).map(|column| [0, column]));
        ComponentMap::of(lane, component)
    }

    fn of(lane: impl Iterator<Item = [u8; 2]>, component: impl Iterator<Item = [u8; 2]>) -> ComponentMap {
        fn padded(positions: impl Iterator<Item = [u8; 2]>) -> ([[u8; 2]; BITS], u8) {
            let mut all = [[0; 2]; BITS];
            let mut count = 0;
            for (to, position) in all.iter_mut().zip(positions) {
                *to = position;
                count += 1;
            }
            (all, count)
        }
        let ((lane, lane_bits), (component, component_bits)) = (padded(lane), padded(component));
        ComponentMap { lane_bits, component_bits, lane, component }
    }

    /// The mapping of a matrix of this many rows and columns in which `position(lane, component)`
    /// is the row and the column of a component; `None` if the function is no such mapping, or
    /// misses elements.
    pub fn found(
        [rows, columns]: [u32; 2],
        lanes: u32,
        position: impl Fn(u32, u32) -> [u32; 2],
    ) -> Option<ComponentMap> {
        let all = [rows, columns, lanes];
        let components = (rows * columns).checked_div(lanes)?;
        let fits = |x: u32| x.is_power_of_two() && x <= 1 << (BITS - 1);
        if !all.into_iter().all(fits) || !fits(components) || components * lanes != rows * columns {
            return None;
        }
        let bit = |at: [u32; 2]| {
            let [row, column] = at;
            let one = (row == 0 && column.is_power_of_two()) || (column == 0 && row.is_power_of_two());
            (one && row < rows && column < columns).then_some([row as u8, column as u8])
        };
        let lane: Vec<_> = bits(1, lanes).map(|lane| bit(position(lane.into(), 0))).collect::<Option<_>>()?;
        let component: Vec<_> = bits(1, components).map(|i| bit(position(0, i.into()))).collect::<Option<_>>()?;
        let map = ComponentMap::of(lane.into_iter().collect::<Vec<_>>().into_iter(), component.into_iter());
        let right = (0..lanes).all(|l| (0..components).all(|i| map.position(l, i) == position(l, i)));
        // The mapping reaches every element exactly once if its bits are all bits of rows and
        // columns.
        let mut positions: Vec<_> = map.bits_of_lanes().chain(map.bits_of_components()).collect();
        positions.sort_unstable();
        positions.dedup();
        (right && positions.len() as u32 == rows.ilog2() + columns.ilog2()).then_some(map)
    }

    fn bits_of_lanes(&self) -> impl Iterator<Item = [u8; 2]> + '_ {
        self.lane[..usize::from(self.lane_bits)].iter().copied()
    }

    fn bits_of_components(&self) -> impl Iterator<Item = [u8; 2]> + '_ {
        self.component[..usize::from(self.component_bits)].iter().copied()
    }

    /// Lanes of a subgroup.
    pub fn lanes(&self) -> u32 {
        1 << self.lane_bits
    }

    /// Components of a lane.
    pub fn components(&self) -> u32 {
        1 << self.component_bits
    }

    /// Row and column of a component of lane 0. The offset of another lane is the same for all of
    /// its components.
    pub fn component_position(&self, component: u32) -> [u32; 2] {
        sum(self.bits_of_components(), component)
    }

    /// Row and column of a component.
    pub fn position(&self, lane: u32, component: u32) -> [u32; 2] {
        let (x, y) = (sum(self.bits_of_lanes(), lane), self.component_position(component));
        [x[0] + y[0], x[1] + y[1]]
    }

    /// The offset of this invocation's components from those of lane 0, in rows and in columns.
    pub fn lane_position<'b>(&self, b: &'b Builder) -> [Value<'b>; 2] {
        let lane = b.subgroup_lane();
        [0, 1].map(|axis| {
            let zero = b.u32(0);
            self.bits_of_lanes()
                .zip(0u32..)
                .filter(|(position, _)| position[axis] > 0)
                .fold(zero, |sum, (position, bit)| sum | (((lane >> bit) & 1) << u32::from(position[axis]).ilog2()))
        })
    }

    /// The number of rows (`axis` 0) or columns (1) of which a lane has components.
    pub fn lines_of_lane(&self, axis: usize) -> u32 {
        let bits = &self.component[..usize::from(self.component_bits)];
        1 << bits.iter().filter(|position| position[axis] != 0).count()
    }

    /// The masks by which the indices of lanes with the same rows (axis 0) or columns (axis 1)
    /// differ.
    pub fn lanes_along(&self, axis: usize) -> Vec<u32> {
        let along = self.bits_of_lanes().zip(0u32..).filter(|(position, _)| position[axis] == 0);
        along.map(|(_, bit)| 1 << bit).collect()
    }

    /// The mask of the bit of a lane's index that is the lowest bit of the row (axis 0) or of the
    /// column (axis 1); 0 if a bit of the component's index is.
    pub fn lane_of_neighbour(&self, axis: usize) -> u32 {
        self.bits_of_lanes().zip(0u32..).find(|(position, _)| position[axis] == 1).map_or(0, |(_, bit)| 1 << bit)
    }

    /// For each component of `other`, the component of this mapping at the same row and column;
    /// `None` if the lanes have different elements.
    pub fn order_of(&self, other: &ComponentMap) -> Option<Vec<u32>> {
        let same = self.lane == other.lane && self.lanes() == other.lanes() && self.components() == other.components();
        let find = |position| (0..self.components()).find(|&i| self.component_position(i) == position);
        same.then(|| (0..other.components()).map(|i| find(other.component_position(i))).collect()).flatten()
    }
}

/// The powers of two from `from` to below `end`.
fn bits(from: u32, end: u32) -> impl Iterator<Item = u8> {
    (from.ilog2()..end.ilog2()).map(|bit| 1 << bit)
}

fn sum(positions: impl Iterator<Item = [u8; 2]>, number: u32) -> [u32; 2] {
    let set = positions.zip(0u32..).filter(|(_, bit)| number >> bit & 1 == 1);
    set.fold([0; 2], |at, (position, _)| [at[0] + u32::from(position[0]), at[1] + u32::from(position[1])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quads_are_those_of_the_units() {
        let map = ComponentMap::quads(16, 16, 32);
        assert_eq!((map.lanes(), map.components()), (32, 8));
        for (lane, component, position) in [
            (0, 0, [0, 0]),
            (0, 1, [0, 1]),
            (1, 0, [0, 2]),
            (4, 0, [1, 0]),
            (0, 2, [8, 0]),
            (0, 4, [0, 8]),
            (31, 7, [15, 15]),
        ] {
            assert_eq!(map.position(lane, component), position);
        }
        assert_eq!((map.lanes_along(0), map.lanes_along(1)), (vec![1, 2], vec![4, 8, 16]));
        assert_eq!((map.lane_of_neighbour(0), map.lane_of_neighbour(1)), (4, 0));
        assert_eq!((map.lines_of_lane(0), map.lines_of_lane(1)), (2, 4));
    }

    #[test]
    fn a_map_is_found_again() {
        for (rows, columns, lanes) in [(16, 16, 32), (16, 16, 8), (16, 16, 4), (8, 8, 8), (16, 8, 64)] {
            let map = ComponentMap::quads(rows, columns, lanes);
            assert_eq!(ComponentMap::found([rows, columns], lanes, |l, i| map.position(l, i)), Some(map));
        }
        // A mapping of one column per lane; two functions that reach elements twice.
        let column = ComponentMap::found([8, 8], 8, |lane, i| [i, lane]);
        let map = column.expect("it is one");
        assert_eq!((map.lanes_along(0), map.lane_of_neighbour(1)), (vec![1, 2, 4], 1));
        assert_eq!(ComponentMap::found([8, 8], 8, |_, i| [i, 0]), None);
        assert_eq!(ComponentMap::found([8, 8], 8, |lane, i| [i, lane ^ i]), None);
    }

    #[test]
    fn orders_of_components() {
        let map = ComponentMap::quads(16, 16, 32);
        assert_eq!(map.order_of(&map), Some((0..8).collect()));
        let swapped =
            ComponentMap::found([16, 16], 32, |l, i| map.position(l, i >> 1 | (i & 1) << 2)).expect("it is one");
        let order = map.order_of(&swapped).expect("lanes hold the same");
        assert!((0..8).all(|i| map.component_position(order[i as usize]) == swapped.component_position(i)));
        assert_eq!(map.order_of(&ComponentMap::quads(16, 16, 8)), None);
    }
}
