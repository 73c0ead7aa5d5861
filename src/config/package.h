#pragma once
/*
 * Commands that run a package of a registry, as READMEs of MCP servers have them:
 *
 *	npx -y PKG[@VERSION] ARG...	npx -p PKG BIN ARG...	npm exec PKG -- ARG...
 *	uvx PKG[==VERSION] ARG...	uvx --from PKG CMD ARG...	pipx run PKG ARG...
 *	bunx, pnpm dlx, uv tool run
 *	docker run -i IMAGE ARG...	podman run -i IMAGE ARG...: config/docker.h
 *
 * The hub runs no such command. It fetches the package once, and runs what it has fetched
 * (modules/package.h). No I/O here.
 */
#include "config/config.h"

enum config_package_kind { CONFIG_NPM, CONFIG_PYPI, CONFIG_IMAGE, CONFIG_PACKAGE_KINDS };
extern const char *const config_package_kind_names[CONFIG_PACKAGE_KINDS];

enum { CONFIG_PACKAGE_NAME_MAX = 214, CONFIG_PACKAGE_VERSION_MAX = 128 };

/* Borrows from the server's texts. */
struct config_package {
	enum config_package_kind kind;
	struct str name; /* "@scope/name"; of PyPI with extras: "name[cli]" */
	/* A version, range or tag; of PyPI with operator: "==1.2"; of an image ":1.2", "@sha256:…"
	 * or both; STR_NONE. */
	struct str version;
	struct str program; /* the one to run; STR_NONE: the package's own */
	bool pulls; /* an image: also if the store has one of this name */
	size_t rest; /* args from this one on are the program's */
};

/* 1: the server runs a package in a sandbox; 0: it runs something else, or not in a sandbox; -1:
 * ERR_INVALID, it runs one in a way that is not known here. */
int config_package_read(const struct config_server *s, struct config_package *ret,
			struct err *e) MUST_USE;
