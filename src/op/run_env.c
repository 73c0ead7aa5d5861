#include "op/run_env.h"

#include "call/guard.h"
#include "guard/policy/policy.h"
#include "json/document/pointer.h"

/* Names, and beginnings of names where a star is at the end. */
static const char *const loading[] = {
	/* the loader and the C library */
	"LD_*",
	"DYLD_*",
	"GCONV_PATH",
	"GETCONF_DIR",
	"GLIBC_TUNABLES",
	"HOSTALIASES",
	"LOCPATH",
	"NIS_PATH",
	"NLSPATH",
	"RESOLV_HOST_CONF",
	/* most tools call so what they take as if it were on their command line */
	"*_OPTIONS",
	"*_OPTS",
	"*_ADDOPTS",
	"*FLAGS",
	"*_PLUGINS",
	"*_PLUGIN_PATH",
	"*_RSH",
	"*_PAGER",
	"*_EDITOR",
	"XDG_*",
	"OPENSSL_*",
	/* shells, and programs that others start by name */
	"PATH",
	"IFS",
	"ENV",
	"BASH_*",
	"BASHOPTS",
	"SHELLOPTS",
	"SHELL",
	"CDPATH",
	"FPATH",
	"ZDOTDIR",
	"PS4",
	"PROMPT_COMMAND",
	"EDITOR",
	"VISUAL",
	"PAGER",
	"MANPAGER",
	"BROWSER",
	"LESSOPEN",
	"LESSCLOSE",
	"LESSKEY*",
	"TERMINFO*",
	"SSH_ASKPASS",
	"SUDO_ASKPASS",
	"INPUTRC",
	"HOME",
	"TERMCAP",
	"AWKPATH",
	"AWKLIBPATH",
	"PSModulePath",
	"CURL_HOME",
	"WGETRC",
	"VIMINIT",
	"EXINIT",
	"GVIMINIT",
	"MYVIMRC",
	"VIM",
	"VIMRUNTIME",
	"EMACSLOADPATH",
	"LESS",
	"FZF_DEFAULT_COMMAND",
	"RIPGREP_CONFIG_PATH",
	"ACKRC",
	"PSQLRC",
	"SCREENRC",
	"DIALOGRC",
	"M4",
	"M4PATH",
	"ACLOCAL_PATH",
	"AUTOCONF",
	"AUTOMAKE",
	"GDB_DATA_DIRECTORY",
	"DEBUGINFOD_URLS",
	"VALGRIND_LIB",
	"PARALLEL*",
	"GIO_*",
	"GTK_*",
	"QT_*",
	"GST_*",
	"LIBGL_DRIVERS_PATH",
	"VK_*",
	"MAGICK_*",
	"GS_LIB",
	"TEXMF*",
	"TEXINPUTS",
	"OCL_ICD_VENDORS",
	/* languages */
	"PYTHON*",
	"PERL*",
	"RUBY*",
	"GEM_*",
	"BUNDLE_*",
	"NODE_PATH",
	"NODE_EXTRA_CA_CERTS",
	"NODE_REPL_EXTERNAL_MODULE",
	"NPM_CONFIG_*",
	"npm_config_*",
	"JAVA_HOME",
	"CLASSPATH",
	"MAVEN_*",
	"GRADLE_*",
	"LUA_*",
	"PHPRC",
	"COMPOSER_*",
	"GHCRTS",
	"GHC_*",
	"OCAMLPATH",
	"IRBRC",
	"PRYRC",
	"PYTEST_*",
	"COVERAGE_PROCESS_*",
	"MYPYPATH",
	"IPYTHONDIR",
	"JUPYTER_*",
	"MPLBACKEND",
	"MATPLOTLIBRC",
	"DJANGO_SETTINGS_MODULE",
	"FLASK_APP",
	"KERAS_*",
	"CONDARC",
	"CONDA_*",
	"NODE_V8_COVERAGE",
	"TS_NODE_*",
	"TSX_*",
	"DENO_*",
	"BUN_*",
	"YARN_*",
	"PNPM_*",
	"COREPACK_*",
	"ANT_ARGS",
	"PHP_INI_SCAN_DIR",
	"TCLLIBPATH",
	"TCL_LIBRARY",
	"GUILE_*",
	"R_HOME",
	"R_LIBS*",
	"R_PROFILE*",
	"R_ENVIRON*",
	"JULIA_*",
	"DOTNET_*",
	"CORECLR_*",
	"COR_*",
	"COMPlus_*",
	"MONO_*",
	"ERL_*",
	"OCAMLRUNPARAM",
	"CAMLRUNPARAM",
	"CAML_LD_LIBRARY_PATH",
	/* tools that build or fetch, and what they start */
	"GIT_*",
	"GOENV",
	"GOPATH",
	"GOROOT",
	"GOBIN",
	"GOWORK",
	"GOPROXY",
	"GOTOOLCHAIN",
	"CARGO_*",
	"RUSTC*",
	"RUSTUP_*",
	"RUSTDOC*",
	"MAKEFILES",
	"CC",
	"CXX",
	"CPP",
	"LD",
	"AR",
	"AS",
	"FC",
	"COMPILER_PATH",
	"GCC_EXEC_PREFIX",
	"PKG_CONFIG*",
	"CMAKE_*",
	"PIP_*",
	"UV_*",
	"POETRY_*",
	"CCACHE_*",
	"DISTCC_*",
	"CPATH",
	"C_INCLUDE_PATH",
	"CPLUS_INCLUDE_PATH",
	"OBJC_INCLUDE_PATH",
	"LIBRARY_PATH",
	"CVS_*",
	"SVN_*",
	"HG*",
	"BZR_*",
	"RSYNC_*",
	"KUBECONFIG",
	"AWS_CONFIG_FILE",
	"AWS_SHARED_CREDENTIALS_FILE",
	"CLOUDSDK_CONFIG",
	"DOCKER_*",
	"TF_CLI_*",
	"ANSIBLE_*",
	"NIX_*",
	"GNUPGHOME",
	"PGSERVICEFILE",
	"PGSYSCONFDIR",
	"MYSQL_HOME",
	"ODBC*",
	"RPM_CONFIGDIR",
	"DPKG_*",
	"APT_CONFIG",
	"AFL_PRELOAD",
	"QEMU_*",
	"WINEDLLOVERRIDES",
	"OMPI_MCA_*",
	"PMIX_MCA_*",
	"VIRTUAL_ENV",
	/* from whom code is fetched, and who vouches for it */
	"*_proxy",
	"*_PROXY",
	"SSL_CERT_FILE",
	"SSL_CERT_DIR",
	"CURL_CA_BUNDLE",
	"REQUESTS_CA_BUNDLE",
	/* libraries that load modules which their configuration names */
	"OPENSSL_*",
	"SASL_PATH",
	"KRB5_CONFIG",
	"GTK_MODULES",
	"GTK_PATH",
	"GIO_MODULE_DIR",
	"GIO_EXTRA_MODULES",
	"GST_PLUGIN*",
	"QT_PLUGIN_PATH",
	"QT_QPA_PLATFORM_PLUGIN_PATH",
	"XDG_CONFIG_*",
	"XDG_DATA_*",
	"VK_*",
	"LIBGL_DRIVERS_PATH",
	"GNUTLS_SYSTEM_PRIORITY_FILE",
};

static bool name_is(const char *row, struct str name)
{
	size_t n = strlen(row);

	if (row[0] == '*')
		return str_ends(name, row + 1);
	if (row[n - 1] != '*')
		return str_is(name, row);
	return name.n >= n - 1 && memcmp(name.p, row, n - 1) == 0;
}

/* Whether a program that gets it may load or run other code because of it. */
static bool run_env_loads(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(loading); i++) {
		if (name_is(loading[i], name))
			return true;
	}
	return false;
}

int run_env_check(struct call *c, const struct field_map *env, struct err *e)
{
	const struct policy *p = call_guard(c)->policy;
	const struct config_file *f = p ? config_file(p->config) : NULL;

	for (size_t i = 0; i < env->n; i++) {
		struct str name = env->p[i].key;
		struct json_pointer at = JSON_POINTER_INIT;

		if (!run_env_loads(name) || (f && policy_names(&f->env, name)))
			continue;
		err_set(e, ERR_DENIED,
			"env: %.*s decides what programs load, and the operator's file grants no "
			"such variable (\"env\")",
			STR_CUT(name, 64));
		json_pointer_key(&at, STR_LIT("env"));
		json_pointer_key(&at, name);
		return err_point(e, "%.*s", (int)at.n, at.text);
	}
	return 0;
}
