#include "hub/workspace/leave_out.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>

#include "base/mem.h"

/* docs/workspaces.md lists these. in: the folder that it must be in; NULL: any. */
static const struct rule {
	const char *name, *in;
	bool keep;
} rules[] = {
	{ .name = ".env.example", .keep = true },
	{ .name = ".env.sample", .keep = true },
	{ .name = ".env.template", .keep = true },
	{ .name = ".env" },
	{ .name = ".env.*" },
	{ .name = ".envrc" },
	{ .name = ".netrc" },
	{ .name = ".git-credentials" },
	{ .name = ".npmrc" },
	{ .name = ".pypirc" },
	{ .name = ".pgpass" },
	{ .name = ".my.cnf" },
	{ .name = ".htpasswd" },
	{ .name = ".vault-token" },
	{ .name = ".ssh" },
	{ .name = ".gnupg" },
	{ .name = ".aws" },
	{ .name = ".azure" },
	{ .name = ".kube" },
	{ .name = "gh", .in = ".config" },
	{ .name = "gcloud", .in = ".config" },
	{ .name = "config.json", .in = ".docker" },
	{ .name = "credentials.toml", .in = ".cargo" },
	{ .name = "id_rsa" },
	{ .name = "id_dsa" },
	{ .name = "id_ecdsa" },
	{ .name = "id_ed25519" },
	{ .name = "*.pem" },
	{ .name = "*.key" },
	{ .name = "*.p12" },
	{ .name = "*.pfx" },
	{ .name = "*.jks" },
	{ .name = "*.keystore" },
	{ .name = "*.kdbx" },
};

static bool leave_out_matches(const char *pattern, struct str s)
{
	char text[256];

	if (s.n >= sizeof(text) || memchr(s.p, '\0', s.n))
		return false;
	snprintf(text, sizeof(text), "%.*s", STR_ARG(s));
	return fnmatch(pattern, text, FNM_CASEFOLD) == 0;
}

bool leave_out(struct str folder, struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (leave_out_matches(rules[i].name, name) &&
		    (!rules[i].in || leave_out_matches(rules[i].in, folder)))
			return !rules[i].keep;
	}
	return false;
}
