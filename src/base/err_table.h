/*
 * The table of failures: included by err.h and err.c with ERR_ROW defined; no include guard by
 * intent. A new row needs a line in the golden test of failures, and one in door/http/error.c.
 *
 * ERR_ROW(CODE, name, JSON-RPC, HTTP, exit, retryable, class, remediation)
 *
 * The class (enum err_failure) says which of six reactions helps:
 *
 *	POLICY		the operator's rules forbid it: ask a person, or do without
 *	VALIDATION	the request is wrong, or does not fit what is there: change it
 *	TIMEOUT		its time was over: give it more, or do less
 *	GUEST		what ran in the sandbox failed, or met one of its limits
 *	TRANSPORT	Holt, its host or the way to it failed: nothing is wrong with the request
 *	CLEANUP		it is done, but something of it could not be removed
 *
 * Exit status 125 is "Holt itself failed", 126 and 127 are the shell's "can't run" and "not
 * found", 124 is timeout(1)'s.
 */
ERR_ROW(INVALID, "invalid_arguments", -32602, 400, 125, false, VALIDATION,
	"Correct the argument that the cause names; the schema of the call lists what it takes.")
ERR_ROW(DENIED, "denied", -32602, 403, 125, false, POLICY,
	"The operator's policy forbids this; ask a person to change it, or do without.")
ERR_ROW(CONFLICT, "conflict", -32602, 409, 125, true, VALIDATION,
	"Something else is using it; wait for that to end and try again.")
ERR_ROW(TOO_LARGE, "too_large", -32602, 413, 125, false, VALIDATION,
	"Send or ask for less at once: read a range, write in parts, or keep the data in the "
	"sandbox.")
ERR_ROW(LIMIT, "limit_exceeded", -32603, 429, 125, true, TRANSPORT,
	"End what is no longer needed, or wait until something ends, and try again.")
ERR_ROW(TIMEOUT, "timeout", -32603, 504, 124, true, TIMEOUT,
	"Give a longer timeout, or do less in one call.")
ERR_ROW(CANCELLED, "cancelled", -32603, 499, 125, true, TRANSPORT,
	"The caller ended this call; call again if it is still wanted.")
ERR_ROW(TRANSPORT, "transport_failed", -32603, 502, 125, true, TRANSPORT,
	"The connection broke; connect again and repeat the call.")
ERR_ROW(CLIENT_CANT, "client_cant", -32603, 501, 125, false, TRANSPORT,
	"The call has to ask its client, which does not declare that capability; use a client that "
	"does, or do without.")
ERR_ROW(CLIENT_FAILED, "client_failed", -32603, 502, 125, true, TRANSPORT,
	"The client, its user or its model gave no answer that the call could use; try again when "
	"they can.")
ERR_ROW(IO, "io_error", -32603, 500, 125, true, TRANSPORT,
	"The host failed to do it; try again, and tell the operator if it fails again.")
ERR_ROW(BUG, "internal_error", -32603, 500, 125, false, TRANSPORT,
	"This is a defect of Holt; report the cause and what was called.")
ERR_ROW(UNSUPPORTED, "unsupported_on_host", -32603, 501, 125, false, VALIDATION,
	"Run `holt doctor` on the host: it names what is missing and how to get it.")
ERR_ROW(PROGRAM, "program_missing", -32603, 501, 125, false, TRANSPORT,
	"Install what the cause names, or do what it says instead.")
ERR_ROW(PATH_NOT_FOUND, "path_not_found", -32602, 404, 125, false, VALIDATION,
	"Check the path inside the sandbox, for example with sandbox_exec and ls; relative paths "
	"start at the sandbox's working directory.")
ERR_ROW(PATH_DENIED, "path_denied", -32602, 403, 125, false, VALIDATION,
	"Use a path that the sandbox's user may write, such as one below /workspace or /tmp.")
ERR_ROW(NOT_A_FILE, "not_a_file", -32602, 400, 125, false, VALIDATION,
	"Name a regular file; directories, pipes, sockets, devices and /proc are reached with "
	"sandbox_exec only.")
ERR_ROW(COMMAND_NOT_FOUND, "command_not_found", -32602, 404, 127, false, GUEST,
	"Check the program's name and that the template contains it; without args, command is a "
	"line for the shell.")
ERR_ROW(COMMAND_NOT_RUN, "command_not_executable", -32602, 403, 126, false, GUEST,
	"Make the file executable (chmod +x), check its interpreter line, and that the working "
	"directory exists.")
ERR_ROW(DISK_FULL, "disk_full", -32603, 507, 125, false, GUEST,
	"Remove files inside the sandbox, or create one with a larger disk_mb.")

/* ---- of the HTTP door only ----------------------------------------------------------------- */

ERR_ROW(UNAUTHORIZED, "unauthorized", -32603, 401, 125, false, POLICY,
	"Send the header \"Authorization: Bearer TOKEN\"; `holt auth token` prints the token of a "
	"hub to its owner.")
ERR_ROW(LINK, "link_not_valid", -32603, 401, 125, false, POLICY,
	"Open a new link: `holt web` prints one to the page, `holt preview` one to a port of a "
	"sandbox.")
ERR_ROW(HOST, "host_not_allowed", -32603, 403, 125, false, POLICY,
	"Use the address that the server printed at its start, or have its operator name this host "
	"with --allow-host.")
ERR_ROW(ORIGIN, "origin_not_allowed", -32603, 403, 125, false, POLICY,
	"Only pages of this server may send requests; its operator can allow others with "
	"--allow-origin.")
ERR_ROW(ROUTE, "route_not_found", -32603, 404, 125, false, VALIDATION,
	"Check the path; the manual page of the server lists what is served.")
ERR_ROW(METHOD, "method_not_allowed", -32603, 405, 125, false, VALIDATION,
	"Use one of the methods that the cause and the Allow header name.")
ERR_ROW(MEDIA_TYPE, "unsupported_media_type", -32603, 415, 125, false, VALIDATION,
	"Send JSON in UTF-8, and the header \"Content-Type: application/json\" with it.")

/* ---- of the client's role only ------------------------------------------------------------- */

ERR_ROW(LOGIN, "login_required", -32603, 502, 125, false, POLICY,
	"The server requires a log-in: have a person log in (`holt mcp discover --url URL` at a "
	"terminal asks for it), or give Holt a token or client id that the server accepts.")
ERR_ROW(UNTRUSTED, "server_untrusted", -32603, 502, 125, false, POLICY,
	"What the server says could lead a log-in or its token to somebody else, so nothing secret "
	"was sent. Tell whoever runs it what the cause says, and give it no token until that is "
	"mended.")
ERR_ROW(NOT_PUBLIC, "address_not_public", -32603, 502, 125, false, POLICY,
	"Only public addresses are connected to here. Where the server is in a network of your "
	"own, allow that (`holt mcp WORD --allow-private`).")

/* ---- of messages themselves, before what they ask -------------------------------------------- */

ERR_ROW(NOT_JSON, "not_json", -32700, 400, 125, false, VALIDATION,
	"Send one JSON text in UTF-8; the cause says at which byte it stops being one.")
ERR_ROW(MESSAGE, "invalid_message", -32600, 400, 125, false, VALIDATION,
	"Correct the message, or the header, that the cause names; the revision of the protocol "
	"says what it takes.")
ERR_ROW(NO_METHOD, "method_not_found", -32601, 404, 125, false, VALIDATION,
	"Call a method that the revision has and that the server's capabilities declare.")
ERR_ROW(NOT_OFFERED, "not_offered", -32602, 404, 125, false, VALIDATION,
	"List what is offered (tools/list, resources/list, prompts/list), and take a name from "
	"there.")

/* ERR_HUB_ROWS: those from here on are Holt's own. They stand last, so that a new one changes
 * nothing of libmcp (lib/public). */

ERR_ROW(SANDBOX_NOT_FOUND, "sandbox_not_found", -32602, 404, 125, false, VALIDATION,
	"Use an id that sandbox_create or sandbox_fork returned; a terminated or expired sandbox "
	"can't come back, so create a new one.")
ERR_ROW(TEMPLATE_NOT_FOUND, "template_not_found", -32602, 404, 125, false, VALIDATION,
	"Name an existing template; \"host\" is always there.")
ERR_ROW(IMAGE, "invalid_image", -32602, 422, 125, false, VALIDATION,
	"The image is damaged, malicious or in an unknown format; nothing of it was kept. Get it "
	"again from its publisher.")
ERR_ROW(SNAPSHOT_NOT_FOUND, "snapshot_not_found", -32602, 404, 125, false, VALIDATION,
	"List the snapshots; an expired or deleted snapshot can't come back.")
ERR_ROW(APPROVAL_NOT_FOUND, "approval_not_found", -32602, 404, 125, false, VALIDATION,
	"List the requests (`holt inbox approvals`); those that ended long ago are not kept.")
ERR_ROW(ANSWERED, "already_answered", -32602, 409, 125, false, VALIDATION,
	"The first answer counts. Look at the request; an approval that still holds can be "
	"revoked.")
ERR_ROW(QUESTION_NOT_FOUND, "question_not_found", -32602, 404, 125, false, VALIDATION,
	"List the questions (`holt inbox`); those that ended long ago are not kept.")
ERR_ROW(QUESTION_EXPIRED, "question_expired", -32602, 410, 125, false, TIMEOUT,
	"Nobody waits for its answer any more; have it asked again.")
ERR_ROW(SNAPSHOT, "invalid_snapshot", -32602, 422, 125, false, VALIDATION,
	"The archive is damaged or was changed; nothing of it was kept. Export the snapshot again.")
ERR_ROW(CONVERSATION_NOT_FOUND, "conversation_not_found", -32602, 404, 125, false, VALIDATION,
	"List the conversations; one that was deleted may still be in the trash.")
ERR_ROW(QUEUE_FULL, "queue_full", -32603, 409, 125, true, POLICY,
	"Wait until the conversation has taken a prompt, or remove one from its queue.")
ERR_ROW(AGENT, "agent_failed", -32603, 502, 125, true, GUEST,
	"Read the cause, which has the last words of the agent's program; send the prompt again.")
ERR_ROW(AGENT_LOGIN, "agent_login_required", -32603, 502, 125, false, POLICY,
	"Ask the operator to log in to the agent, or to give it a key or an authMethod (agents in "
	"the operator's file).")
ERR_ROW(WORKSPACE_NOT_FOUND, "workspace_not_found", -32602, 404, 125, false, VALIDATION,
	"List the workspaces (workspace_list) and their revisions (workspace_log); a deleted one "
	"can't come back.")
ERR_ROW(WORKSPACE_BUSY, "workspace_busy", -32602, 409, 125, true, POLICY,
	"One sandbox at a time writes to a workspace. End that sandbox, attach with mode copy, or "
	"fork the workspace.")
ERR_ROW(WORKSPACE_LARGE, "workspace_too_large", -32602, 413, 125, false, VALIDATION,
	"Remove what the cause names from /workspace and try again; nothing was changed. "
	"docs/workspaces.md has the limits.")
ERR_ROW(WORKSPACE, "workspace_damaged", -32603, 500, 125, false, CLEANUP,
	"Files of the workspace's store were changed or lost. Use another revision, or restore the "
	"data folder from a backup.")
ERR_ROW(STORAGE_FULL, "storage_full", -32603, 507, 125, false, POLICY,
	"Delete workspaces and snapshots that are no longer needed, or ask the operator to raise "
	"the bound.")
ERR_ROW(IMAGE_LARGE, "image_too_large", -32602, 413, 125, false, VALIDATION,
	"Use a smaller image, or allow more with --max-size and --max-files; an archive that "
	"unpacks to hundreds of times its size is always refused.")
ERR_ROW(TREE_DEEP, "tree_too_deep", -32602, 413, 125, false, VALIDATION,
	"Move what the cause names into fewer directories inside each other, remove it, or leave "
	"it out (a build: .holtignore).")
ERR_ROW(IMAGE_DISK, "image_store_full", -32603, 507, 125, false, TRANSPORT,
	"Free some of the disk that holds Holt's data folder, for example by `holt images prune` "
	"and `holt images rm`, then import again.")
ERR_ROW(BUILD, "build_failed", -32602, 422, 125, false, GUEST,
	"Read the output of the step. Steps of holt.json run as `run_user`, by default not root, "
	"and reach no host but those of `holt build --allow HOST`.")
ERR_ROW(KEY_NOT_FOUND, "key_not_found", -32602, 404, 125, false, VALIDATION,
	"List the keys; a revoked key can't come back, so create a new one.")
ERR_ROW(PROCESS_NOT_FOUND, "process_not_found", -32602, 404, 125, false, VALIDATION,
	"It has ended, or never was; list the processes of the sandbox.")
ERR_ROW(OTHER_BUILD, "other_build", -32603, 409, 125, false, TRANSPORT,
	"Sandboxes of another version of Holt still run here: stop them with that version, or end "
	"its holt-warden, which ends them too, and start again.")
ERR_ROW(PIDS_FULL, "pids_exhausted", -32603, 429, 125, true, GUEST,
	"End processes inside the sandbox (sandbox_processes, sandbox_signal), or create one with "
	"more pids.")
ERR_ROW(MEMORY_FULL, "memory_exhausted", -32603, 507, 125, true, GUEST,
	"End processes or remove files inside the sandbox, or create one with a larger memory_mb.")
ERR_ROW(GUEST, "sandbox_lost", -32603, 410, 125, false, GUEST,
	"The sandbox's first process is gone and its files with it; create a new sandbox.")
ERR_ROW(IDLE, "idle_timeout", -32603, 410, 125, false, TIMEOUT,
	"The sandbox was ended because it was not used for its idle time; create a new one, with a "
	"longer idle time.")
ERR_ROW(PORT, "port_failed", -32603, 502, 125, true, GUEST,
	"Start the server in the sandbox on that port, at 127.0.0.1 or at all addresses, wait "
	"until it listens, and try again.")
ERR_ROW(NO_QUOTA, "no_quota", -32603, 501, 125, false, VALIDATION,
	"Put the folder on a file system of its own (a volume, an image, a tmpfs) that is no "
	"larger than the size; or leave the size out.")
ERR_ROW(NAME_TAKEN, "name_taken", -32602, 409, 125, false, VALIDATION,
	"It exists: use it, if it is what you want, or take another name.")
ERR_ROW(OWNER, "foreign_owner", -32602, 403, 125, false, VALIDATION,
	"Only its owner can change it: ask for that, or have the operator give it to the user of "
	"the other files (chown), then call again.")
ERR_ROW(SECRET_NOT_FOUND, "secret_not_found", -32602, 404, 125, false, VALIDATION,
	"Have the operator store it (`holt secret set NAME`) or name it in the configuration file; "
	"`holt secret ls` lists what there is.")
ERR_ROW(AUDIT_NOT_FOUND, "audit_record_not_found", -32602, 404, 125, false, VALIDATION,
	"List the audit log: it has the calls of this hub's data folder, as far back as they are "
	"kept.")
ERR_ROW(UNREAD, "file_not_read", -32602, 409, 125, false, VALIDATION,
	"Read the file first, so that nothing is replaced unseen; then call again.")
ERR_ROW(STALE, "file_changed", -32602, 409, 125, false, VALIDATION,
	"Decide by the text as it is now, which follows; then call again.")
ERR_ROW(MODULE_NOT_FOUND, "module_not_found", -32602, 404, 125, false, VALIDATION,
	"List the modules (list_mcp_servers, `holt mcp list`); they are those of mcpServers in the "
	"operator's file.")
ERR_ROW(MODULE_TOOL, "module_tool_not_found", -32602, 404, 125, false, VALIDATION,
	"Look at the module's tools (mcp_server_info, `holt mcp info NAME`).")
ERR_ROW(MODULE_RESULT, "module_result_not_found", -32602, 404, 125, false, VALIDATION,
	"Call the tool again, for less if it can give less: large results are kept for ten "
	"minutes.")
ERR_ROW(MODULE_FAILED, "module_failed", -32603, 502, 125, false, GUEST,
	"The module's server refused the call, or its answer is not what the protocol wants: read "
	"the cause, and change the arguments or tell the operator.")
ERR_ROW(MODULE_START, "module_not_started", -32603, 502, 125, true, GUEST,
	"Tell the operator the cause: it is about the module's program or its entry. `holt mcp "
	"logs NAME` has what the program wrote, and `holt mcp test NAME` tries again.")
ERR_ROW(MODULE_UNAPPROVED, "module_not_approved", -32602, 403, 125, false, POLICY,
	"Ask the operator to look at it (`holt mcp info NAME`) and to approve it (`holt mcp "
	"approve NAME`).")
ERR_ROW(PACKAGE, "package_not_fetched", -32603, 502, 125, true, TRANSPORT,
	"Packages come from the registry that npm, pip or skopeo of the hub's user is set to "
	"(.npmrc, pip.conf, registries.conf). Check the package's name and version, and that "
	"this host reaches that registry; then try again.")
ERR_ROW(UNSURE, "outcome_unknown", -32603, 500, 125, false, TRANSPORT,
	"It is done or may have been done, and nothing has confirmed it. Look whether it is there "
	"before you do it again, and tell the operator.")
ERR_ROW(CLEANUP, "cleanup_failed", -32603, 500, 125, true, CLEANUP,
	"A part of an ended sandbox could not be removed yet; Holt will try again.")
ERR_ROW(PAUSED, "sandbox_paused", -32602, 409, 125, false, VALIDATION,
	"Resume the sandbox, then call again; paused as it is, it can be forked and terminated.")
ERR_ROW(DATA_MISSING, "data_missing", -32603, 500, 125, false, TRANSPORT,
	"Have the operator mount its disk or restore it from a backup, then call again: nothing "
	"else of it was removed.")

/* ---- of the registry ----------------------------------------------------------------------- */

ERR_ROW(STORE_FULL, "registry_full", -32603, 507, 125, true, TRANSPORT,
	"Free space on the host's disk that holds Holt's data folder, or what the cause names, "
	"then try again; running sandboxes are not affected.")
ERR_ROW(STORE_CORRUPT, "registry_damaged", -32603, 500, 125, false, TRANSPORT,
	"Stop Holt, copy its data folder, and restore registry.db (with -wal and -shm) from a "
	"backup, or repair it with `sqlite3 registry.db .recover`. With a new registry, files of "
	"snapshots and workspaces are moved aside, not deleted (docs/sandboxes.md).")
ERR_ROW(STORE_LOCKED, "registry_locked", -32603, 503, 125, true, TRANSPORT,
	"Use the hub that runs already (holt hub status), end it (holt hub stop), or give this "
	"one a data folder of its own (HOLT_HOME).")
ERR_ROW(STORE_READONLY, "registry_read_only", -32603, 500, 125, false, TRANSPORT,
	"Make Holt's data folder and the files in it writable for the user who runs it.")
ERR_ROW(STORE_NEWER, "registry_newer", -32603, 500, 125, false, TRANSPORT,
	"Run the Holt that wrote it, or give this one a data folder of its own (HOLT_HOME).")
ERR_ROW(FOLDER, "folder_not_safe", -32603, 500, 125, false, VALIDATION,
	"Look at what is in it; then give it to the user who runs Holt alone (chown, chmod go-w), "
	"or use another folder (HOLT_HOME).")
