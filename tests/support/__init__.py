"""What the tests share: dtypes and layouts, comparison with a reference, threads and processes."""
