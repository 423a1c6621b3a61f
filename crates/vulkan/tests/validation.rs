//! With `TORCH_DML_VALIDATION=1`, mistakes are counted.

mod support;

#[test]
fn mistakes_are_counted_when_asked_for() {
    let gpu = support::open();
    if std::env::var("TORCH_DML_VALIDATION").as_deref() != Ok("1") {
        assert_eq!(dml_vulkan::validation_errors(), 0);
        return;
    }
    // The kernel reads push constants that the layout does not have.
    let _ = gpu.compile("wrong layout", support::ADD, 0);
    assert!(dml_vulkan::validation_errors() > 0);
}
