//! Tests of the emulator's own parts.
