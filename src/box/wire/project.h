#pragma once
/*
 * What programs of the host act on in a project folder. The warden keeps it as it is
 * (box/warden/project.h), and snapshots of the folder are without it.
 */
#include <stdbool.h>

#include <stddef.h>
#include <string.h>

enum project_missing {
	/* an empty directory, which the owner may fill meanwhile */
	BECOMES_DIRECTORY,
	BECOMES_FILE, /* where a directory would stop git */
	/* An empty directory that nobody may enter, for git takes such a one for no part of a
	 * repository, and programs that copy the folder pass it. Root may enter any: a folder of
	 * root's has a socket there. Git shows neither, and snapshots are without it. */
	BECOMES_BARRIER,
	/* It may be made: what acts on it asks first, or is installed by other files of the list,
	 * or this is told when the sandbox ends. */
	STAYS_MISSING,
};

static const struct project_entry {
	const char *path;
	enum project_missing missing;
	const char *text; /* of the file that is made */
	/* As a repository it may be written, but not moved: what is in it has rows of its own. */
	bool open;
	bool of_home; /* made only in a folder that has another of them */
	bool bare; /* one that exists is the project's own, and may be written */
	bool otherwise; /* made only where the one before could not be */
	bool state; /* a folder of that name is also a program's own, in a home */
	/* made only where git may take the folder itself for a repository */
	bool implicit;
	/* Files that programs which act on it keep in a home. Without any of them no such program
	 * is used here, and nothing is made. */
	const char *used[10];
} project_entries[] = {
	{ ".git", BECOMES_DIRECTORY, .open = true },
	{ ".git/config", BECOMES_FILE, "" },
	{ ".git/config.worktree", BECOMES_FILE, "" },
	/* With it git reads configuration from elsewhere. It names the directory that it is in. */
	{ ".git/commondir", BECOMES_FILE, ".\n" },
	{ ".git/hooks", BECOMES_DIRECTORY },
	{ ".git/modules", BECOMES_DIRECTORY },
	/* Addresses of remotes, as git had them before its configuration has. */
	{ ".git/branches", BECOMES_DIRECTORY },
	{ ".git/remotes", BECOMES_DIRECTORY },
	{ ".git/worktrees", BECOMES_DIRECTORY },
	/* Clients of docs/clients.md: they start servers and hooks that these name. */
	{ ".augment", STAYS_MISSING, .state = true },
	{ ".claude", BECOMES_DIRECTORY, .state = true, .used = { ".claude", ".claude.json" } },
	{ ".codex", BECOMES_DIRECTORY, .state = true, .used = { ".codex" } },
	{ ".cursor", BECOMES_DIRECTORY, .state = true,
	  .used = { ".cursor", ".cursor-server", ".config/Cursor" } },
	{ ".gemini", BECOMES_DIRECTORY, .state = true, .used = { ".gemini" } },
	{ ".mcp.json", BECOMES_DIRECTORY, .used = { ".claude", ".claude.json" } },
	{ ".opencode", BECOMES_DIRECTORY, .state = true,
	  .used = { ".config/opencode", ".local/share/opencode", ".opencode" } },
	{ "opencode.json", BECOMES_DIRECTORY,
	  .used = { ".config/opencode", ".local/share/opencode", ".opencode" } },
	{ "opencode.jsonc", BECOMES_DIRECTORY,
	  .used = { ".config/opencode", ".local/share/opencode", ".opencode" } },
	{ ".qwen", STAYS_MISSING, .state = true },
	{ ".vscode", BECOMES_DIRECTORY, .state = true,
	  .used = { ".vscode", ".vscode-oss", ".vscode-server", ".config/Code", ".config/VSCodium",
		    ".local/share/code-server", ".cursor", ".cursor-server", ".windsurf",
		    ".var/app" } },
	{ ".windsurf", STAYS_MISSING, .state = true },
	{ ".zed", BECOMES_DIRECTORY, .state = true,
	  .used = { ".config/zed", ".local/share/zed", ".zed_server", ".var/app" } },
	/* Other editors and agents. */
	{ ".amazonq", STAYS_MISSING, .state = true },
	{ ".clinerules", STAYS_MISSING },
	{ ".copilot", STAYS_MISSING, .state = true },
	{ ".devcontainer", STAYS_MISSING },
	{ ".devcontainer.json", STAYS_MISSING },
	{ ".idea", BECOMES_DIRECTORY,
	  .used = { ".config/JetBrains", ".cache/JetBrains", ".local/share/JetBrains",
		    ".config/Google", ".var/app" } },
	{ ".kiro", STAYS_MISSING, .state = true },
	{ ".nvim.lua", STAYS_MISSING },
	{ ".roo", STAYS_MISSING },
	/* Holt's own: which attributes conversations have. A new one is for conversations that are
	 * made later (op/conversation/user_data.c). */
	{ ".holtrc", STAYS_MISSING },
	{ ".mittorc", STAYS_MISSING },
	/* Run by installed hooks and tools of shells. */
	{ ".envrc", STAYS_MISSING },
	{ ".githooks", STAYS_MISSING },
	{ ".husky", STAYS_MISSING },
	{ ".lefthook.yml", STAYS_MISSING },
	{ ".mise.toml", STAYS_MISSING },
	{ ".npmrc", STAYS_MISSING },
	{ ".pre-commit-config.yaml", STAYS_MISSING },
	{ "lefthook-local.yml", STAYS_MISSING },
	{ "lefthook.yml", STAYS_MISSING },
	{ "mise.toml", STAYS_MISSING },
	/* Where .git is no repository git takes the folder itself for one that has HEAD, objects
	 * and refs, or finds those two by commondir. No sandbox can make what is missing. */
	{ "commondir", BECOMES_DIRECTORY, .implicit = true },
	{ "refs", BECOMES_BARRIER, .bare = true, .implicit = true },
	{ "objects", BECOMES_BARRIER, .bare = true, .otherwise = true, .implicit = true },
	{ ".bash_login", BECOMES_DIRECTORY, .of_home = true },
	{ ".bash_logout", BECOMES_DIRECTORY, .of_home = true },
	{ ".bash_profile", BECOMES_DIRECTORY, .of_home = true },
	{ ".bashrc", BECOMES_DIRECTORY, .of_home = true },
	{ ".gitconfig", BECOMES_DIRECTORY, .of_home = true },
	{ ".profile", BECOMES_DIRECTORY, .of_home = true },
	{ ".ssh", BECOMES_DIRECTORY, .of_home = true },
	{ ".zlogin", BECOMES_DIRECTORY, .of_home = true },
	{ ".zlogout", BECOMES_DIRECTORY, .of_home = true },
	{ ".zprofile", BECOMES_DIRECTORY, .of_home = true },
	{ ".zshenv", BECOMES_DIRECTORY, .of_home = true },
	{ ".zshrc", BECOMES_DIRECTORY, .of_home = true },
};

/* Others that tools act on, which a sandbox may write: what reads them asks first, or is installed
 * by files of the fixed list, or is run by few people where a sandbox has worked. */
static const char *const project_told[] = {
	".RData",
	".Renviron",
	".Rprofile",
	".agents",
	".aider.conf.yml",
	".amp",
	".arcconfig",
	".autoenv",
	".autoenv.zsh",
	".byebugrc",
	".cline",
	".codebuddy",
	".config/lefthook.json",
	".config/lefthook.toml",
	".config/lefthook.yaml",
	".config/lefthook.yml",
	".config/mise",
	".config/mise.toml",
	".continue",
	".crush.json",
	".dir-locals.el",
	".direnv",
	".emacs.desktop",
	".erlang",
	".exrc",
	".factory",
	".fleet",
	".fossil-settings",
	".fslckout",
	".gdbinit",
	".gh-dash.yml",
	".ghci",
	".ghcid",
	".git/arc/config",
	".git/lazygit.yml",
	".git/sl/config",
	".github/copilot",
	".github/hooks",
	".github/mcp.json",
	".gnuplot",
	".goose",
	".grok",
	".helix",
	".iex.exs",
	".iflow",
	".irbrc",
	".jdbrc",
	".junie",
	".junie/mcp",
	".kilocode",
	".kimi",
	".lazy.lua",
	".lazygit.yml",
	".lefthook.json",
	".lefthook.toml",
	".lefthook.yaml",
	".lldbinit",
	".lvimrc",
	".mise",
	".mise.local.toml",
	".neoconf.json",
	".nova",
	".nvimrc",
	".ocamlinit",
	".octaverc",
	".opencode.json",
	".openhands",
	".overcommit.yml",
	".pdbrc",
	".pdbrc.py",
	".perldb",
	".pi",
	".pi/extensions",
	".prototools",
	".pryrc",
	".psysh.php",
	".qoder",
	".rdebugrc",
	".repo/repo",
	".rootrc",
	".rovodev",
	".rvmrc",
	".serena",
	".shadowenv.d",
	".singularrc",
	".tabnine",
	".tool-versions",
	".trae",
	".valgrindrc",
	".vibe",
	".vim",
	".vimrc",
	".vs",
	".ycm_extra_conf.py",
	"_FOSSIL_",
	"_MTN/monotonerc",
	"_irbrc",
	"autoexec.sas",
	"crush.json",
	"gptme.toml",
	"gtags.conf",
	"irbrc",
	"jdb.ini",
	"jupyter_config.json",
	"jupyter_config.py",
	"jupyter_console_config.py",
	"jupyter_lab_config.py",
	"jupyter_notebook_config.json",
	"jupyter_notebook_config.py",
	"jupyter_server_config.json",
	"jupyter_server_config.py",
	"lefthook-local.json",
	"lefthook-local.toml",
	"lefthook-local.yaml",
	"lefthook.json",
	"lefthook.toml",
	"lefthook.yaml",
	"mise.local.toml",
	"profile.do",
	"rootlogon.C",
	"startup.m",
};

/* Repositories of other programs than git, which run what these files say, or what the repository
 * says that they name. What such a program writes each day is not among them. */
static const struct {
	const char *dir, *program;
	const char *files[6];
} project_repositories[] = {
	{ ".bzr", "bzr", { ".bzr/branch/branch.conf", ".bzr/branch/location" } },
	{ ".hg", "hg", { ".hg/hgrc", ".hg/hgrc-not-shared", ".hg/requires", ".hg/sharedpath" } },
	{ ".jj",
	  "jj",
	  { ".jj", ".jj/repo", ".jj/repo/config.toml", ".jj/repo/config-id",
	    ".jj/repo/store/git_target", ".jj/workspace-config.toml" } },
	{ ".pijul", "pijul", { ".pijul/config" } },
	{ ".sl", "sl", { ".sl/config", ".sl/requires", ".sl/sharedpath" } },
	{ "_darcs", "darcs", { "_darcs/prefs/defaults", "_darcs/prefs/prefs" } },
};

/* Its path below a folder, or below one that is itself what .git is elsewhere; NULL: it has none
 * there. */
static inline const char *project_path(const struct project_entry *n, bool is_git)
{
	const char *in_git = strncmp(n->path, ".git/", 5) == 0 ? n->path + 5 : NULL;

	return is_git ? in_git : n->path;
}
