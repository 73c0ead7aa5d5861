#pragma once
/*
 * What to run for a task of a project, as a line for a shell that starts in the project's folder,
 * and how to read what it prints. A command that lacks a program prints "#holt-missing NAME" and
 * ends with 127. No I/O.
 */
#include "coding/project.h"
#include "coding/tests.h"

enum { COMMAND_MAX = 96 << 10, PACKAGE_SCRIPTS_MAX = 128, PACKAGE_BYTES_MAX = 1 << 20 };

struct command {
	struct buf line; /* owned */
	enum test_format format; /* of TASK_TEST */
	bool everything; /* a rerun: the runner can't be told which tests, so it runs all */
};
void command_init(struct command *c);
void command_fini(struct command *c);

/* What is read of a package.json. It borrows from its document. */
struct package {
	struct package_script {
		struct str name, line;
	} scripts[PACKAGE_SCRIPTS_MAX];
	size_t n;
	bool jest, vitest; /* it depends on them */
};
struct json_val;
void package_read(const struct json_val *v, struct package *ret);

/* package: of PROJECT_NODE; else NULL. -1 with ERR_INVALID: it has no such command. */
int command_for(const struct project *p, const struct package *package, enum project_task task,
		struct command *ret, struct err *e) MUST_USE;

/* Only these tests again. */
int command_rerun(const struct project *p, const struct package *package, const struct test_id *ids,
		  size_t n, struct command *ret, struct err *e) MUST_USE;

/* A script by its name: of package.json, a target of make, a file in script/ or scripts/. Prints
 * the names there are behind "#holt-scripts " where there is none of this name. */
int command_script(const struct project *p, const struct package *package, struct str name,
		   struct command *ret, struct err *e) MUST_USE;

/* How to get a program, for a person; never NULL. */
const char *program_hint(struct str name);
