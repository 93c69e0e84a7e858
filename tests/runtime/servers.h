// Servers for tests of the remote cache: a real nginx with WebDAV, and one of our own that misbehaves as told. Both on the
// loopback.
#pragma once
#include "tests/compile/run_cli.h"
#include <arpa/inet.h>
#include <atomic>
#include <csignal>
#include <functional>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>

namespace kiln::test {

// A socket that listens on a port of the kernel's choice.
struct Listener {
  int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int port = 0;
  Listener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(socket, reinterpret_cast<sockaddr*>(&address), length) == 0 && listen(socket, 16) == 0 &&
        getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0)
      port = ntohs(address.sin_port);
  }
  ~Listener() { close(socket); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
};

// Answers each connection with what `answer` says to the request's head; an empty answer means: never.
class BadServer {
public:
  explicit BadServer(std::function<std::string(const std::string& head)> answer)
      : answer_(std::move(answer)), thread_([this] { serve(); }) {}
  ~BadServer() {
    stop_ = true;
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(listener_.port); }
  int requests() const { return requests_; }

private:
  void serve() {
    std::vector<int> open; // connections that get no answer stay open
    while (!stop_) {
      pollfd waiting{.fd = listener_.socket, .events = POLLIN, .revents = 0};
      if (poll(&waiting, 1, 10) <= 0) continue;
      const int client = accept(listener_.socket, nullptr, nullptr);
      std::string head;
      char byte = 0;
      while (head.find("\r\n\r\n") == std::string::npos && recv(client, &byte, 1, 0) == 1) head += byte;
      ++requests_;
      const std::string answer = answer_(head);
      if (answer.empty()) {
        open.push_back(client);
        continue;
      }
      send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
      close(client);
    }
    for (const int client : open) close(client);
  }

  std::function<std::string(const std::string& head)> answer_;
  Listener listener_;
  std::atomic<bool> stop_{false};
  std::atomic<int> requests_{0};
  std::thread thread_; // last
};

inline std::string http(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
}

// nginx that keeps what is PUT into folder/files. running() is false where there is no nginx.
class Nginx {
public:
  explicit Nginx(const std::filesystem::path& folder) : folder_(folder) {
    if (std::system("PATH=$PATH:/usr/sbin command -v nginx >/dev/null") != 0) return;
    for (int tries = 0; tries < 5 && !running_; ++tries) start(); // the port may be taken between the choice and the start
  }
  ~Nginx() { stop(); }
  Nginx(const Nginx&) = delete;
  Nginx& operator=(const Nginx&) = delete;
  bool running() const { return running_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::filesystem::path files() const { return folder_ / "files"; }
  void stop() {
    if (pid_ > 0) {
      kill(pid_, SIGTERM);
      waitpid(pid_, nullptr, 0);
    }
    pid_ = -1;
    running_ = false;
  }

private:
  void start() {
    port_ = Listener().port;
    std::filesystem::create_directories(files());
    std::filesystem::create_directories(folder_ / "temporary");
    const std::string at = folder_.string();
    std::ofstream(folder_ / "nginx.conf") << "daemon off; master_process off; worker_processes 1; pid " << at << "/pid; error_log " << at
                                          << "/error.log;\nevents { worker_connections 64; }\nhttp { access_log off;\n"
                                          << "client_body_temp_path " << at << "/temporary; proxy_temp_path " << at
                                          << "/temporary; fastcgi_temp_path " << at << "/temporary; uwsgi_temp_path " << at
                                          << "/temporary; scgi_temp_path " << at << "/temporary;\n"
                                          << "client_max_body_size 64m; server { listen 127.0.0.1:" << port_ << "; location / { root "
                                          << files().string() << "; dav_methods PUT; create_full_put_path on; } } }\n";
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      const std::string config = (folder_ / "nginx.conf").string(), log = (folder_ / "error.log").string(),
                        out = (folder_ / "out").string();
      if (std::freopen(out.c_str(), "w", stderr) == nullptr) _exit(1);
      setenv("PATH", (std::string(std::getenv("PATH")) + ":/usr/sbin").c_str(), 1);
      execlp("nginx", "nginx", "-p", at.c_str(), "-c", config.c_str(), "-e", log.c_str(), nullptr);
      _exit(1);
    }
    for (int i = 0; i < 1000 && !running_; ++i, usleep(10000)) {
      const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = htons(static_cast<std::uint16_t>(port_));
      running_ = connect(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
      close(probe);
      if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
        return;
      }
    }
  }

  std::filesystem::path folder_;
  pid_t pid_ = -1;
  int port_ = 0;
  bool running_ = false;
};

} // namespace kiln::test
