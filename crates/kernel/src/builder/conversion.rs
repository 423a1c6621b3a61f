//! Conversions between types.

use super::Value;
use crate::ir::Inst;
use crate::types::{ScalarType, Type};

impl<'b> Value<'b> {
    /// Converts to another type. A bool becomes 0 or 1; a number becomes true if it is not 0.
    pub fn cast(self, to: ScalarType) -> Value<'b> {
        if to == self.ty.scalar {
            return self;
        }
        let number = self.ty.scalar != ScalarType::Bool && to != ScalarType::Bool;
        if number && !(self.ty.scalar.is_float() && to.is_float()) {
            return self.b.def(Type { scalar: to, ..self.ty }, Inst::Cast(self.id));
        }
        self.b.function("convert", &[self], || self.converted(to))
    }

    /// Conversions to and from bool, and between float types.
    fn converted(self, to: ScalarType) -> Value<'b> {
        if to == ScalarType::Bool {
            // By the bits: a float comparison may flush a subnormal number to 0.
            return match self.ty.scalar {
                ScalarType::F32 => (self.bitcast(ScalarType::U32) << 1).ne(0),
                ScalarType::F64 => (self.bitcast(ScalarType::U64) << 1).ne(0),
                _ => self.ne(0),
            };
        }
        if self.ty.scalar == ScalarType::Bool {
            return self.select(self.b.constant_of(to, 1.0), self.b.constant_of(to, 0.0));
        }
        let cast = self.b.def(Type { scalar: to, ..self.ty }, Inst::Cast(self.id));
        crate::math::conversion::with_subnormals(self, cast)
    }

    /// The same bits as another type of the same width.
    pub fn bitcast(self, to: ScalarType) -> Value<'b> {
        if to == self.ty.scalar {
            return self;
        }
        assert_eq!(to.bytes(), self.ty.scalar.bytes());
        self.b.def(Type { scalar: to, ..self.ty }, Inst::Bitcast(self.id))
    }

    /// Packs this f32 and another, converted to f16, into a word, this one in the low half; see
    /// [`Inst::Halves`].
    pub fn halves(self, high: Value<'b>) -> Value<'b> {
        self.b.def(Type::scalar(ScalarType::U32), Inst::Halves(self.id, high.id))
    }

    /// The f16 in the low (0) or the high (1) half of a word, as an f32.
    pub fn half(self, half: u8) -> Value<'b> {
        self.b.def(Type::scalar(ScalarType::F32), Inst::Half(self.id, half))
    }
}
