// Messages: size, bytes; in the byte order of the one machine that both ends run on.
#include "runtime/workers/message.h"
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

namespace kiln {
namespace {

constexpr std::uint64_t max_bytes = 1u << 30; // of any message that makes sense

using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>;

bool send_all(int socket, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

Received wait_for_bytes(int socket, const Deadline& deadline) {
  while (true) {
    int left = -1; // ms
    if (deadline) {
      const auto until = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
      if (until <= 0) return Received::timed_out;
      left = static_cast<int>(std::min<std::int64_t>(until, 60000));
    }
    pollfd poll_for{.fd = socket, .events = POLLIN, .revents = 0};
    const int ready = poll(&poll_for, 1, left);
    if (ready > 0) return Received::message;
    if (ready < 0 && errno != EINTR) return Received::closed;
  }
}

Received receive_all(int socket, char* data, std::size_t size, const Deadline& deadline) {
  while (size > 0) {
    if (const Received ready = wait_for_bytes(socket, deadline); ready != Received::message) return ready;
    const ssize_t got = recv(socket, data, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Received::closed;
    data += got;
    size -= static_cast<std::size_t>(got);
  }
  return Received::message;
}

} // namespace

bool send_message(int socket, const std::string& message) {
  const std::uint64_t size = message.size();
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  bytes += message;
  return send_all(socket, bytes.data(), bytes.size());
}

Received receive_message(int socket, std::string& message, std::optional<std::chrono::milliseconds> limit) {
  const Deadline deadline = limit ? Deadline(Clock::now() + *limit) : std::nullopt;
  std::uint64_t size = 0;
  if (const Received got = receive_all(socket, reinterpret_cast<char*>(&size), sizeof size, deadline); got != Received::message) return got;
  if (size > max_bytes) return Received::closed;
  message.assign(size, '\0');
  return receive_all(socket, message.data(), message.size(), deadline);
}

} // namespace kiln
