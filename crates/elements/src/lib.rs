//! The element library: one file an element, one folder a subject.
