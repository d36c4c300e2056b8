// Package overhead measures what a driver costs for each I/O, apart from the
// device and from waiting: the processor's counter is read around each call that
// submits or polls, in the manner of SPDK's overhead tool.
//
// A [Meter] works in cycles. In each it submits as many I/Os as the depth has
// whole batches, batch by batch, and lets the queue poll once after each batch,
// in which pass the batch is sent off (the doorbell, or the send). Then it polls
// until all have completed.
// Each interval between two readings of the counter goes into one of the sums of
// [Counts], less what a reading costs.
package overhead
