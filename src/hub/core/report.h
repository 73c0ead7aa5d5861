#pragma once
/*
 * How an exec ended and what it printed, as clients see it: one table for sandbox_exec's structured
 * result and `holt run --json`. It is built from both outputs and the engine's result. Output that
 * is not UTF-8 also goes out in full, as base64 beside the text.
 */
#include "base/arena.h"
#include "box/host/box.h"
#include "hub/core/output.h"
#include "json/field/field.h"

struct report {
	bool has_exit_code; /* false: it still runs, and only `exec` is set */
	int32_t exit_code;
	struct str out,
		/* "stdout", "stderr": any bytes; the writer replaces invalid UTF-8 */
		err;
	bool has_signal;
	int32_t signal;
	bool timed_out, hit_memory, hit_pids, hit_disk;
	bool has_out_elided, has_err_elided;
	uint64_t out_elided, err_elided;
	struct str out_base64, err_base64; /* the bytes; STR_NONE if they are UTF-8 */
	struct str exec; /* its id; STR_NONE: it is no job */
	/* Of output that is not all here: where in the job's output the first that is left out
	 * begins. */
	bool has_next;
	uint64_t next_offset;
	double wall_ms, cpu_ms;
	uint64_t peak_memory_bytes;

	struct buf out_buf, err_buf; /* what the strings borrow */
};

extern const struct field_table report_table;

/* Fills a report. The caller must call report_fini() in any case. */
int report_init(struct report *r, const struct exec_result *result, const struct output *out,
		const struct output *err, struct err *e) MUST_USE;
void report_fini(struct report *r);

/* {"exit_code":…,"stdout":…,"stderr":…}, in this order. Then timed_out, hit_memory, hit_pids,
 * hit_disk, signal and, where bytes are left out, their counts and where the rest is, each only if
 * it applies: so a timeout differs from a program's own exit code 124. */
int report_text(const struct report *r, struct buf *to, struct err *e) MUST_USE;
