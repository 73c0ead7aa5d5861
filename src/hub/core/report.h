#pragma once
/*
 * How an exec ended and what it printed, as clients see it: sandbox_exec's structured result and
 * `holt run --json` are this one table. Needs the two outputs and the engine's result; makes what
 * is not UTF-8 reach the reader whole, as base64 beside the text.
 */
#include "base/arena.h"
#include "box/host/box.h"
#include "hub/core/output.h"
#include "json/field/field.h"

struct report {
	bool has_exit_code; /* false: it runs on, and only exec is known */
	int32_t exit_code;
	struct str out,
		err; /* "stdout", "stderr": any bytes; the writer replaces what is no UTF-8 */
	bool has_signal;
	int32_t signal;
	bool timed_out, hit_memory, hit_pids, hit_disk;
	bool has_out_elided, has_err_elided;
	uint64_t out_elided, err_elided;
	struct str out_base64, err_base64; /* the bytes; STR_NONE where they are UTF-8 */
	struct str exec; /* of one in the background; STR_NONE else */
	double wall_ms, cpu_ms;
	uint64_t peak_memory_bytes;

	struct buf out_buf, err_buf; /* what the strings borrow */
};

extern const struct field_table report_table;

/* Fills a report, to be given to report_fini() in any case. */
int report_init(struct report *r, const struct exec_result *result, const struct output *out,
		const struct output *err, struct err *e) MUST_USE;
void report_fini(struct report *r);

/* {"exit_code":…,"stdout":…,"stderr":…}: these three keys, in this order. Behind them timed_out,
 * hit_memory, hit_pids, hit_disk, signal and the counts of elided bytes, each only where it says
 * something: a timeout is told from a program's own 124. */
int report_text(const struct report *r, struct buf *to, struct err *e) MUST_USE;
