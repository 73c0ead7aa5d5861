#pragma once
/* New sandboxes: sandbox.create, sandbox.fork and snapshot.restore. */
#include "op/network.h"
#include "op/sandbox_view.h"

enum { COPIES_MAX = 64 };

/* A sandbox that an operation needs: the request of a sandbox.create for it. Its volumes were named
 * by the operator. */
struct sandbox_needed {
	const char *what; /* of the workspace: told where it can't be made */
	struct str id, cwd;
	struct field_map labels, env;
	uint64_t idle_seconds;
	const struct volume *volumes;
	size_t n_volumes;
};
void sandbox_need(const struct sandbox_needed *n, void *request);
