/* Commands that run packages of a registry: what is read of them, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "config/package.h"

enum { WORDS_MAX = 16 };

/* Splits at blanks. */
static struct config_server server_of(char *line, struct str args[WORDS_MAX])
{
	struct config_server s = { .command = str_of(strtok(line, " ")) };
	char *word;

	while ((word = strtok(NULL, " ")))
		args[s.args.n++] = str_of(word);
	s.args.p = args;
	return s;
}

static int read_line(const char *line, struct config_package *ret, struct err *e,
		     char kept[static 256])
{
	struct str args[WORDS_MAX];
	struct config_server s;

	snprintf(kept, 256, "%s", line);
	s = server_of(kept, args);
	s.sandbox.template = STR_LIT("host");
	return config_package_read(&s, ret, e);
}

static void test_understood(void **state)
{
	static const struct {
		const char *line, *name, *version, *program;
		size_t rest;
		enum config_package_kind kind;
	} rows[] = {
		{ "npx -y pkg", "pkg", NULL, NULL, 2, CONFIG_NPM },
		{ "npx pkg a b", "pkg", NULL, NULL, 1, CONFIG_NPM },
		{ "npx -y pkg@latest -- x", "pkg", "latest", NULL, 2, CONFIG_NPM },
		{ "npx --yes pkg@1.2.3-rc.1+b --flag", "pkg", "1.2.3-rc.1+b", NULL, 2, CONFIG_NPM },
		{ "npx -y @scope/pkg@^1.0", "@scope/pkg", "^1.0", NULL, 2, CONFIG_NPM },
		{ "npx -y @scope/pkg", "@scope/pkg", NULL, NULL, 2, CONFIG_NPM },
		{ "npx -p pkg@1 bin x", "pkg", "1", "bin", 3, CONFIG_NPM },
		{ "npx -y --package=@s/p -- bin x", "@s/p", NULL, "bin", 4, CONFIG_NPM },
		{ "npx --package @s/p bin", "@s/p", NULL, "bin", 3, CONFIG_NPM },
		{ "npm exec -y pkg -- --x", "pkg", NULL, NULL, 4, CONFIG_NPM },
		{ "npm exec --package=pkg -- bin -y", "pkg", NULL, "bin", 4, CONFIG_NPM },
		{ "npm x pkg", "pkg", NULL, NULL, 2, CONFIG_NPM },
		{ "pnpm dlx pkg@2 a", "pkg", "2", NULL, 2, CONFIG_NPM },
		{ "bunx pkg", "pkg", NULL, NULL, 1, CONFIG_NPM },
		{ "/usr/bin/npx -y pkg", "pkg", NULL, NULL, 2, CONFIG_NPM },
		{ "uvx pkg --x", "pkg", NULL, NULL, 1, CONFIG_PYPI },
		{ "uvx pkg@1.2", "pkg", "@1.2", NULL, 1, CONFIG_PYPI },
		{ "uvx pkg@latest", "pkg", NULL, NULL, 1, CONFIG_PYPI },
		{ "uvx pkg==1.2", "pkg", "==1.2", NULL, 1, CONFIG_PYPI },
		{ "uvx --from pkg[cli]>=1,<2 cmd a", "pkg[cli]", ">=1,<2", "cmd", 3, CONFIG_PYPI },
		{ "uv tool run pkg", "pkg", NULL, NULL, 3, CONFIG_PYPI },
		{ "pipx run pkg a", "pkg", NULL, NULL, 2, CONFIG_PYPI },
		{ "pipx run --spec pkg==1 cmd", "pkg", "==1", "cmd", 4, CONFIG_PYPI },
		{ "docker run mcp/x", "mcp/x", NULL, NULL, 2, CONFIG_IMAGE },
		{ "docker run -i --rm mcp/x:1 --a -b", "mcp/x", ":1", NULL, 4, CONFIG_IMAGE },
		{ "podman run -it -e A=b -eC=d --env=E r.example:5000/x", "r.example:5000/x", NULL,
		  NULL, 7, CONFIG_IMAGE },
		{ "docker run -ie A --rm=true --name=n -v /a:/b -- x@sha256:1 y", "x", "@sha256:1",
		  NULL, 9, CONFIG_IMAGE },
		{ "docker run --entrypoint node x:1@sha256:1", "x", ":1@sha256:1", "node", 4,
		  CONFIG_IMAGE },
		{ "docker run -p 1:1 -u root --network host x", "x", NULL, NULL, 8, CONFIG_IMAGE },
		{ "podman run oci-archive:/srv/a.tar", "oci-archive:/srv/a.tar", NULL, NULL, 2,
		  CONFIG_IMAGE },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct config_package got = { .rest = 0 };
		struct err e = ERR_INIT;
		char kept[256];

		if (read_line(rows[i].line, &got, &e, kept) != 1)
			fail_msg("%s: %s", rows[i].line, e.msg);
		assert_int_equal(got.kind, rows[i].kind);
		assert_true(str_is(got.name, rows[i].name));
		assert_true(str_eq(got.version, str_of(rows[i].version)));
		assert_true(str_eq(got.program, str_of(rows[i].program)));
		assert_int_equal(got.rest, rows[i].rest);
	}
}

static void test_others(void **state)
{
	static const char *const lines[] = {
		"node server.js",
		"npm run start",
		"docker ps",
		"docker",
		"npm",
		"uv run server.py",
		"npx --offline -y pkg",
		"npx --no-install pkg",
		"uvx --offline pkg",
		"pipx install x",
		"python3 -m pkg",
		"pnpm start",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct config_package got;
		struct err e = ERR_INIT;
		char kept[256];

		if (read_line(lines[i], &got, &e, kept) != 0)
			fail_msg("%s: %s", lines[i], e.msg);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *line, *why;
	} rows[] = {
		{ "npx", "names no package" },
		{ "npx -y", "names no package" },
		{ "npx -p pkg", "names no program" },
		{ "npx -p a -p b bin", "only one package" },
		{ "npx -c run", "\"-c\": this option" },
		{ "npx -y user/repo", "packages of a registry" },
		{ "npx -y github:user/repo", "packages of a registry" },
		{ "npx -y git+https://example.org/x.git", "packages of a registry" },
		{ "npx -y ./here", "packages of a registry" },
		{ "npx -y ../up", "packages of a registry" },
		{ "npx -y @scope", "packages of a registry" },
		{ "npx -y @/x", "packages of a registry" },
		{ "npx -y @s/..", "packages of a registry" },
		{ "npx -y @s/p/q", "packages of a registry" },
		{ "npx -y pkg@", "packages of a registry" },
		{ "npx -y pkg@file:../x", "packages of a registry" },
		{ "npx -y pkg@npm:other@1", "packages of a registry" },
		{ "npx -y pkg;rm", "packages of a registry" },
		{ "npx -y ${PKG}", "has no variables" },
		{ "npx -p pkg ../bin", "no name of a program" },
		{ "uvx --with other pkg", "\"--with\": this option" },
		{ "uvx --from git+https://example.org/x cmd", "packages of a registry" },
		{ "uvx pkg[", "packages of a registry" },
		{ "uvx pkg@https://example.org/x.whl", "packages of a registry" },
		{ "uvx -", "packages of a registry" },
		{ "docker run -i --rm", "names no image" },
		{ "docker run -e", "it has no value" },
		{ "docker run -i --env-file f x", "\"env\" of the entry" },
		{ "docker run --privileged x", "no sandbox gives more rights" },
		{ "docker run -id x", "leave it out" },
		{ "docker run -iX x", "not known here" },
		{ "/usr/bin/podman run --rootfs x", "not known here" },
		{ "docker run -i ${IMAGE}", "has no variables" },
		{ "docker run -i a;b", "no name of an image" },
		{ "docker run -i ../x", "no name of an image" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct config_package got;
		struct err e = ERR_INIT;
		char kept[256];

		if (read_line(rows[i].line, &got, &e, kept) != -1 || e.code != ERR_INVALID ||
		    !strstr(e.msg, rows[i].why))
			fail_msg("%s: %s", rows[i].line, e.msg);
	}
}

/* Whatever the words are, what is read lies in them, and no name can be an option or a path. */
static void test_any(void **state)
{
	static const char *const words[] = { "-y", "-p", "--",	   "--package=", "@s/p@1",
					     "p@", "[",	 "--from", "a[b]==1",	 "",
					     "@",  "=",	 "-",	   "exec",	 "x" };
	static const char *const commands[] = { "npx", "npm", "uvx", "pipx", "uv", "bunx" };
	unsigned seed = 1;

	for (int n = 0; n < 200000; n++) {
		struct str args[6];
		struct config_server s = { .args = { args, (seed >> 8) % 6 } };
		struct config_package got;
		struct err e = ERR_INIT;

		s.command = str_of(commands[(seed >> 16) % 6]);
		for (size_t i = 0; i < s.args.n; i++) {
			seed = seed * 1664525 + 1013904223;
			args[i] = str_of(words[(seed >> 16) % (sizeof(words) / sizeof(*words))]);
		}
		seed = seed * 1664525 + 1013904223;
		if (config_package_read(&s, &got, &e) <= 0)
			continue;
		assert_true(got.rest <= s.args.n && got.name.n > 0);
		assert_false(got.name.p[0] == '-' || got.name.p[0] == '.' || got.name.p[0] == '/');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_understood),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
