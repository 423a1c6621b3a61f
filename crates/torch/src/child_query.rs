//! Questions to drivers that end some processes: they are asked in a child process.

use crate::abi::Status;
use crate::error::{Failure, guard};
use std::ffi::{CStr, OsString, c_char};

/// Sets the command that starts a child process, which calls `dml_answer_child_query` with one more
/// argument, and ends: `count` words in UTF-8, the program first. To be called before the first
/// call that lists devices.
///
/// Without it, what such a question is about is not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_set_child_command(words: *const *const c_char, count: usize) -> i32 {
    guard(|| {
        let of = |i: usize| {
            // SAFETY: the contract's arrays and texts.
            let word = unsafe { words.add(i).read() };
            text(word).map(OsString::from)
        };
        dml_engine::set_child_command((0..count).map(of).collect::<Result<_, _>>()?);
        Ok(())
    })
}

/// In such a child process: writes the answer to the standard output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_answer_child_query(question: *const c_char) -> i32 {
    guard(|| Ok(dml_engine::answer_child_query(&text(question)?).map_err(dml_engine::Error::from)?))
}

/// The text at a pointer of the contract's texts.
fn text(at: *const c_char) -> Result<String, Failure> {
    if at.is_null() {
        return Err(Failure::new(Status::ValueError, "a text is null".to_owned()));
    }
    // SAFETY: the contract's texts; it is not null.
    Ok(unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_is_none_is_an_error() {
        // SAFETY: the text ends with a 0.
        assert_ne!(unsafe { dml_answer_child_query(c"no adapter".as_ptr()) }, Status::Ok as i32);
        // SAFETY: a null text is allowed.
        assert_eq!(unsafe { dml_answer_child_query(std::ptr::null()) }, Status::ValueError as i32);
        // SAFETY: an array of no words.
        assert_eq!(unsafe { dml_set_child_command(std::ptr::null(), 0) }, Status::Ok as i32);
    }
}
