//! The adapter, the driver and the kind of content that identify a file.

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKind {
    /// The first part of the file's name, which messages use too.
    pub name: &'static str,
    /// Its first bytes.
    pub magic: [u8; 8],
    /// The writer's version. A file of another version is not read.
    pub version: u32,
    /// The largest size in bytes. A larger file is not read.
    pub most_bytes: u64,
}

/// The adapter and the driver that a file belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileIdentity {
    /// The vendor's id.
    pub vendor: u32,
    /// The vendor's device id.
    pub device: u32,
    /// The driver's version.
    pub driver: u32,
    /// The UUID of the driver's pipeline cache.
    pub uuid: [u8; 16],
}

impl FileIdentity {
    /// The name of the file in the cache's folder.
    pub(super) fn file_name(&self, kind: FileKind) -> String {
        let uuid: String = self.uuid.iter().map(|b| format!("{b:02x}")).collect();
        format!("{}-{:04x}-{:04x}-{:08x}-{uuid}.bin", kind.name, self.vendor, self.device, self.driver)
    }
}
