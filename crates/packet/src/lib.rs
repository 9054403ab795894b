//! Frames, the frame pool, packets, batches, annotations, wire formats and checksums.
