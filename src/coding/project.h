#pragma once
/*
 * Which projects a folder holds, found by the names of files in it. A project lies where its
 * file that names it is (go.mod, Cargo.toml, package.json, …); one of the same kind in a folder
 * of another belongs to that. No I/O: the names are those that the program of PROJECT_NAMES prints.
 */
#include "base/buf.h"

/* For a shell, in the folder: prints names, each behind "./" and followed by NUL. */
extern const char project_names_command[];

enum project_kind {
	PROJECT_GO,
	PROJECT_RUST,
	PROJECT_NODE,
	PROJECT_PYTHON,
	PROJECT_MESON,
	PROJECT_CMAKE,
	PROJECT_MAKE, /* a Makefile and nothing else that is known */
	PROJECT_SCRIPT, /* an executable of an agreed name: test.sh, script/test, … */
	PROJECT_KINDS
};
extern const char *const project_kind_names[PROJECT_KINDS];

enum { PROJECTS_MAX = 64, PROJECT_DIR_MAX = 512 };

/* What is to be done with it. */
enum project_task { TASK_TEST, TASK_LINT, TASK_TYPECHECK, PROJECT_TASKS };

struct project {
	enum project_kind kind;
	char dir[PROJECT_DIR_MAX]; /* relative; "" for the folder itself */
	/* PROJECT_SCRIPT: the file for each task; empty: none. Static. */
	struct str scripts[PROJECT_TASKS];
	/* Files beside it that decide between its tools: PROJECT_HAS_… */
	unsigned has;
};

enum {
	PROJECT_HAS_PNPM = 1,
	PROJECT_HAS_YARN = 2,
	PROJECT_HAS_BUN = 4,
};

struct projects {
	struct project p[PROJECTS_MAX];
	size_t n;
};

/* names: as printed; what is cut or not understood is left out. Those of the least depth come
 * first, in the order of the kinds. */
void projects_find(struct str names, struct projects *ret);

/* language: a name of a kind, c for meson, cmake and make, or empty. dir: or NULL. Without either
 * it is the one project of the least depth. ERR_NOT_FOUND, ERR_INVALID: several, all named. */
const struct project *projects_choose(const struct projects *all, struct str language,
				      struct str dir, struct err *e) MUST_USE;
