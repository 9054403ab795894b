//! The Click language: lexer, parser, flattener, checks, printer, with spans for errors.
