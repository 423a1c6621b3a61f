//! What stands before the kernel interface.
