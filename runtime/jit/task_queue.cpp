// TaskQueue: tasks run by a few threads that start when they are needed.
#include "runtime/jit/task_queue.h"
#include <system_error>

namespace kiln {

TaskQueue::~TaskQueue() {
  std::deque<Task> left;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    left.swap(tasks_);
  }
  changed_.notify_all();
  for (const Task& task : left) task(true);
  for (std::thread& thread : threads_) thread.join();
}

void TaskQueue::add(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (static_cast<int>(tasks_.size()) > idle_ && static_cast<int>(threads_.size()) < most_) start_thread();
  }
  changed_.notify_one();
}

void TaskQueue::start_thread() {
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) { // no more threads for this user: those that run will do
    if (!threads_.empty()) return;
    tasks_.pop_back();
    throw;
  }
}

void TaskQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    --idle_;
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task(false);
    task = nullptr; // what it holds goes without the lock
    lock.lock();
  }
}

} // namespace kiln
