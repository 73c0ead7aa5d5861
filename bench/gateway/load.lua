-- tools/call over keep-alive connections, of the sessions in turn. The requests are made beforehand, so that the load takes as little as
-- it can of the CPUs that it shares with the server.
-- wrk -s load.lua URL -- TOOL TOKEN SESSION-ID...
local REQUESTS = 8000
local requests, n = {}, 0
local call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{"message":"hello"}}}'

function init(args)
	wrk.method = 'POST'
	wrk.headers['Content-Type'] = 'application/json'
	wrk.headers['Accept'] = 'application/json, text/event-stream'
	wrk.headers['MCP-Protocol-Version'] = '2025-11-25'
	if args[2] ~= '-' then
		wrk.headers['Authorization'] = 'Bearer ' .. args[2]
	end
	for id = 1, REQUESTS do
		wrk.headers['Mcp-Session-Id'] = args[3 + id % (#args - 2)]
		requests[id] = wrk.format(nil, nil, nil, string.format(call, id, args[1]))
	end
end

function request()
	n = n % REQUESTS + 1
	return requests[n]
end

function done(summary, latency, requests)
	io.write(string.format('RESULT %d %d %d %d %d\n', summary.requests, summary.duration,
		summary.errors.status + summary.errors.read + summary.errors.timeout + summary.errors.connect,
		latency:percentile(50), latency:percentile(99)))
end
