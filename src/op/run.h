#pragma once
/*
 * contract.run: the contract for agents (docs/contract.md), one command from nothing. Makes a
 * sandbox, writes files, runs the command as sandbox.exec does, and then does with the sandbox what
 * the request says. A cleanup that fails is told beside the result, never instead of it.
 */
#include "base/failure.h"
#include "op/exec.h"
#include "op/network.h"

enum { RUN_FILES_BYTES_MAX = 4 << 20 }; /* of all files */

struct run_file {
	struct str path, content;
};

struct run_state {
	enum hub_sandbox_retention retention;
};

struct run_request {
	struct str language, image;
	struct {
		const struct run_file *p;
		size_t n;
	} files;
	struct field_strs command;
	struct field_map env;
	struct secret_refs secrets;
	struct network_request network;
	struct run_state state;
	struct str working_dir, input;
	uint32_t timeout_seconds, max_output_bytes;
	uint64_t ttl_seconds;
};

/* Why a sandbox is not as the request says. */
struct run_cleanup {
	struct str code, cause, remediation;
	bool retryable;
};

struct run_answer {
	struct str sandbox_id, out, err, audit_id;
	int32_t exit_code;
	bool timed_out;
	bool has_failure;
	enum err_failure failure; /* the command's, else the cleanup's */
	enum hub_sandbox_retention retention;
	uint64_t duration_ms;
	uint64_t stdout_truncated_bytes, stderr_truncated_bytes;
	struct str isolation;
	struct str snapshot_id; /* with retention snapshot */
	bool has_cleanup;
	struct run_cleanup cleanup;
	struct str receipt;
};
/* Without the receipt, for doors that tell it elsewhere. */
extern const struct field_table run_told_table;
