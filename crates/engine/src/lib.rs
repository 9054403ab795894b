//! The run-time: elements, workers, tasks, timers, notifiers, handlers, hot swap, reception mechanisms.
