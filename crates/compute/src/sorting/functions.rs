//! Elementwise functions of sorting.

use crate::functions;
use crate::sorting::key::of_bits;

functions! {
    /// The sort key of an element, given by its bits, which are of the option's dtype. Flag 0: for
    /// descending order.
    SORT_KEY = "sort_key"(bits | o).integers() => of_bits(bits, o.dtype, o.flags[0]);
    /// Whether a key is not NaN's.
    SORT_IS_NUMBER = "sort_is_number"(key, nan) => key.ne(nan);
    /// The rank of the median among `n` sorted elements, the first `count` of which are numbers: of
    /// the numbers' median if NaN is ignored (flag 0), else of the first NaN if there is one.
    MEDIAN_RANK = "median_rank"(count, n | o).integers() => {
        let middle = (count.max(1) - 1) / 2;
        if o.flags[0] { middle } else { count.lt(n).select(count, middle) }
    };
}
