// A web server in C++ that serves its heap profile itself, on its own port, and forgets something: the answer to every
// search is kept, and nothing is ever thrown away.
//
//     ./server_cc &
//     curl -s 'http://127.0.0.1:8081/search/[1-2000]' >/dev/null
//     curl -so heap.pb.gz http://127.0.0.1:8081/debug/pprof/heap
//     heapgauge top heap.pb.gz
//     curl -so heap.svg http://127.0.0.1:8081/debug/pprof/heap/flamegraph
//
// Usage: server_cc [PORT]
// Build: c++ -O2 -g server.cc -o server_cc -lheapgauge -ljemalloc -pthread
#include <arpa/inet.h>
#include <heapgauge.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

// Read by jemalloc when the program starts; MALLOC_CONF in the environment comes after it and may say otherwise.
extern "C" {
extern const char *malloc_conf;
const char *malloc_conf = "prof:true,lg_prof_sample:17";
}

// The leak: a cache without a limit.
class Searches {
public:
	[[gnu::noinline]] std::size_t find(const std::string &query)
	{
		std::lock_guard guard(lock_);
		auto [at, is_new] = answers_.try_emplace(query);
		if (is_new)
			for (int i = 0; i < 100; i++)
				at->second.push_back(query + ": answer number " + std::to_string(i) + std::string(64, '.'));
		return answers_.size();
	}

private:
	std::mutex lock_;
	std::map<std::string, std::vector<std::string>> answers_;
};

// A heap profile, in memory of the library's own: none of it is on the heap that it shows.
class Profile {
public:
	explicit Profile(bool flamegraph)
		: result_(flamegraph ? hg_dump_named("svg", &bytes_, &size_) : hg_dump_pprof(&bytes_, &size_))
	{
	}
	Profile(const Profile &) = delete;
	Profile &operator=(const Profile &) = delete;
	~Profile()
	{
		if (result_ == HG_OK)
			hg_free(bytes_, size_);
	}
	std::string_view bytes() const { return { static_cast<const char *>(bytes_), size_ }; }
	int result() const { return result_; }

private:
	void *bytes_ = nullptr;
	std::size_t size_ = 0;
	int result_;
};

static bool send_all(int fd, std::string_view text, int more)
{
	while (!text.empty()) {
		ssize_t n = send(fd, text.data(), text.size(), MSG_NOSIGNAL | more);
		if (n <= 0)
			return false;
		text.remove_prefix(static_cast<std::size_t>(n));
	}
	return true;
}

static bool answer(int fd, const std::string &status, std::string_view body)
{
	std::string header = "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
	return send_all(fd, header, MSG_MORE) && send_all(fd, body, 0);
}

static bool answer_profile(int fd, bool flamegraph)
{
	Profile profile(flamegraph);
	if (profile.result() == HG_OK)
		return answer(fd, "200 OK", profile.bytes());
	bool off = profile.result() <= HG_NO_JEMALLOC && profile.result() >= HG_INACTIVE;
	const char *status = off ? "403 Forbidden" : "500 Internal Server Error";
	return answer(fd, status, std::string(hg_strerror(profile.result())) + "\n");
}

static bool route(int fd, const std::string &path, Searches &searches)
{
	if (path.rfind("/search/", 0) == 0)
		return answer(fd, "200 OK", std::to_string(searches.find(path)) + " searches\n");
	if (path == "/debug/pprof/heap" || path == "/debug/pprof/heap/flamegraph")
		return answer_profile(fd, path != "/debug/pprof/heap");
	return answer(fd, "404 Not Found", "try /search/something\n");
}

// One request after another, until the client goes or says something that is no GET.
static void serve(int fd, Searches &searches)
{
	std::string text;
	char part[4096];
	for (ssize_t n; text.size() < 65536 && (n = recv(fd, part, sizeof part, 0)) > 0;) {
		text.append(part, static_cast<std::size_t>(n));
		std::size_t end = text.find("\r\n\r\n"), blank = text.find(' ', 4);
		if (end == std::string::npos)
			continue;
		if (text.rfind("GET ", 0) != 0 || blank > end || !route(fd, text.substr(4, blank - 4), searches))
			break;
		text.erase(0, end + 4);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	static Searches searches;
	sockaddr_in address = {};
	socklen_t size = sizeof address;
	address.sin_family = AF_INET;
	address.sin_port = htons(static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8081));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	auto *where = reinterpret_cast<sockaddr *>(&address);
	if (bind(server, where, size) != 0 || listen(server, 64) != 0 || getsockname(server, where, &size) != 0) {
		std::perror("server_cc: cannot listen");
		return 1;
	}
	std::printf("listening on http://127.0.0.1:%u\n", ntohs(address.sin_port));
	std::fflush(stdout);
	for (;;) {
		int fd = accept4(server, nullptr, nullptr, SOCK_CLOEXEC);
		if (fd >= 0)
			std::thread(serve, fd, std::ref(searches)).detach();
	}
}
