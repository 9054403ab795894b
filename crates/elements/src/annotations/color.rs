//! A color and where packets have theirs: what Paint, CheckPaint and PaintTee are configured with.

use causeway_engine::ir::{Builder, Field, Test};
use causeway_engine::spec::{ArgDoc, optional};
use causeway_engine::{Conf, Invalid};
use causeway_packet::{Anno, Packet};

/// Where a packet's color is looked for.
pub(super) const ANNO_ARG: ArgDoc =
    optional("ANNO", "annotation", "where the paint is, one byte; default PAINT");

pub(super) struct Color {
    value: u8,
    offset: u8,
}

impl Color {
    /// From the arguments COLOR and ANNO, which are all.
    pub fn configured(conf: &mut Conf<'_>) -> Result<Color, Invalid> {
        let value = conf.required("COLOR");
        let anno: Anno = conf.optional("ANNO", Anno::PAINT);
        conf.finish()?;
        Ok(Color { value, offset: anno.offset })
    }

    /// Whether it is the packet's color.
    #[inline]
    pub fn is_of(&self, packet: &Packet) -> bool {
        packet.anno_u8(self.offset) == self.value
    }

    /// Makes it the packet's color.
    #[inline]
    pub fn give(&self, packet: &mut Packet) {
        packet.set_anno_u8(self.offset, self.value);
    }

    /// Whether it is the packet's color, as a program asks.
    pub fn lower_test(&self, b: &mut Builder) -> Test {
        Test::Equal(b.get(Field::Anno(self.offset, 1)).into(), u64::from(self.value).into())
    }

    /// Makes it the packet's color in a program.
    pub fn lower_give(&self, b: &mut Builder) {
        b.put(Field::Anno(self.offset, 1), u64::from(self.value));
    }

    /// Answers the handler `color`.
    pub fn read(&self) -> String {
        self.value.to_string()
    }

    /// Carries out the handler `color`.
    pub fn write(&mut self, text: &str) -> Result<(), String> {
        self.value = crate::handlers::value("color", text)?;
        Ok(())
    }
}
