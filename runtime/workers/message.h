// Message: a list of byte strings on a stream socket, between Kiln and its worker processes.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

using Message = std::vector<std::string>;

// False when the other side is gone.
bool send_message(int socket, const Message& message);

enum class Received { message, closed, timed_out };
// Waits for at most `limit`, in steady time; no limit: for ever. `closed` also stands for a malformed message.
Received receive_message(int socket, Message& message, std::optional<std::chrono::milliseconds> limit = {});

} // namespace kiln
