// A prediction as a page.
#include "isa_checks/timing/predict.h"

namespace kiln::timing {

std::string to_html(const Prediction& p) { return "<pre>" + to_text(p) + "</pre>"; }

} // namespace kiln::timing
