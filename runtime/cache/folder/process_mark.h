// Process marks: names of processes by which another one can tell whether they still live.
#pragma once
#include <string>
#include <string_view>

namespace kiln {

// This process: "HOST-PID-START", where HOST stands for one boot and one name space of process ids.
std::string process_mark();
std::string unique_mark(); // with a number that no other call in this process gets: "HOST-PID-START-N"
bool is_unique_mark(std::string_view name);

// Certainly gone: of this boot and name space, and no process has its id and start any more. A mark of another host, no mark,
// and a process that this user may not look at may live.
bool surely_gone(std::string_view mark);

} // namespace kiln
