#pragma once
/*
 * The registries that the operator's own tools are set to, for the sandbox that fetches a package:
 *
 *	npm	npm_config_registry, ~/.npmrc, /etc/npmrc; else registry.npmjs.org
 *	PyPI	PIP_INDEX_URL, UV_DEFAULT_INDEX, UV_INDEX_URL, pip.conf; else pypi.org
 *
 * Tokens of these files are not read: no package and no sandbox gets one.
 */
#include "base/buf.h"
#include "config/package.h"

enum { REGISTRY_HOSTS_MAX = 8, REGISTRY_URL_MAX = 512 };

struct registry {
	char url[REGISTRY_URL_MAX]; /* the one of packages without a scope of their own */
	char hosts[REGISTRY_HOSTS_MAX][REGISTRY_URL_MAX]; /* rules: "HOST:PORT" */
	size_t n_hosts;
	char authority[4096]; /* path of certificates that it is trusted by; "": the host's */
	struct buf settings; /* .npmrc or pip.conf of the sandbox */
};

/* registry_fini() must follow in any case. */
int registry_read(enum config_package_kind kind, struct registry *ret, struct err *e) MUST_USE;
void registry_fini(struct registry *r);
