#pragma once
/*
 * Toolchains below the home of the hub's user (rustup, nvm, pyenv and so on), for sandboxes that
 * work on a folder. Each is given read-only at its own path: programs and virtual environments have
 * that path in them. Only the folders of programs and libraries are given, never the file or folder
 * beside them that may hold credentials, nor a folder whose path below the home has a link in it.
 */
#include "config/config.h"

struct toolchains {
	struct field_strs read; /* folders and files of the host, at the same path inside */
	struct field_map env; /* PATH, and the variables by which toolchains are found */
};

/* What is there now; texts are in a. Without a home, or one with no toolchain, both are empty. -1:
 * out of memory. */
int toolchains_find(struct arena *a, struct toolchains *ret, struct err *e) MUST_USE;

/* Whether who works on a folder gets them: as the workspace of that folder says, else the operator
 * alone. f NULL: there is no file. */
bool toolchains_given(const struct config_file *f, const char *folder, bool operator);
