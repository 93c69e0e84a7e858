// The check of every rule, by id. Internal: rule.h has the table.
#pragma once
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/verdict/rules/sink.h"

namespace kiln::isa::rules {

void mem001(const KernelAnalysis& kernel, FindingSink& sink);
void mem002(const KernelAnalysis& kernel, FindingSink& sink);
void mem003(const KernelAnalysis& kernel, FindingSink& sink);
void mem004(const KernelAnalysis& kernel, FindingSink& sink);
void mem005(const KernelAnalysis& kernel, FindingSink& sink);
void mem006(const KernelAnalysis& kernel, FindingSink& sink);
void mem008(const KernelAnalysis& kernel, FindingSink& sink);
void mem009(const KernelAnalysis& kernel, FindingSink& sink);
void mem010(const KernelAnalysis& kernel, FindingSink& sink);
void mem011(const KernelAnalysis& kernel, FindingSink& sink);
void lds001(const KernelAnalysis& kernel, FindingSink& sink);
void lds002(const KernelAnalysis& kernel, FindingSink& sink);
void lds003(const KernelAnalysis& kernel, FindingSink& sink);
void wait001(const KernelAnalysis& kernel, FindingSink& sink);
void wait002(const KernelAnalysis& kernel, FindingSink& sink);
void wait003(const KernelAnalysis& kernel, FindingSink& sink);
void wait004(const KernelAnalysis& kernel, FindingSink& sink);
void wait005(const KernelAnalysis& kernel, FindingSink& sink);
void wait006(const KernelAnalysis& kernel, FindingSink& sink);
void wait007(const KernelAnalysis& kernel, FindingSink& sink);
void sync001(const KernelAnalysis& kernel, FindingSink& sink);
void sync002(const KernelAnalysis& kernel, FindingSink& sink);
void sync003(const KernelAnalysis& kernel, FindingSink& sink);
void spl001(const KernelAnalysis& kernel, FindingSink& sink);
void spl002(const KernelAnalysis& kernel, FindingSink& sink);
void spl003(const KernelAnalysis& kernel, FindingSink& sink);
void spl004(const KernelAnalysis& kernel, FindingSink& sink);
void spl005(const KernelAnalysis& kernel, FindingSink& sink);
void occ001(const KernelAnalysis& kernel, FindingSink& sink);
void occ002(const KernelAnalysis& kernel, FindingSink& sink);
void occ003(const KernelAnalysis& kernel, FindingSink& sink);
void lch001(const KernelAnalysis& kernel, FindingSink& sink);
void lch002(const KernelAnalysis& kernel, FindingSink& sink);
void lch003(const KernelAnalysis& kernel, FindingSink& sink);
void lch004(const KernelAnalysis& kernel, FindingSink& sink);
void lch005(const KernelAnalysis& kernel, FindingSink& sink);
void lch006(const KernelAnalysis& kernel, FindingSink& sink);
void mth001(const KernelAnalysis& kernel, FindingSink& sink);
void mth002(const KernelAnalysis& kernel, FindingSink& sink);
void mth003(const KernelAnalysis& kernel, FindingSink& sink);
void mth004(const KernelAnalysis& kernel, FindingSink& sink);
void mth005(const KernelAnalysis& kernel, FindingSink& sink);
void mth006(const KernelAnalysis& kernel, FindingSink& sink);
void cvt001(const KernelAnalysis& kernel, FindingSink& sink);
void cvt002(const KernelAnalysis& kernel, FindingSink& sink);
void cvt003(const KernelAnalysis& kernel, FindingSink& sink);
void mfm001(const KernelAnalysis& kernel, FindingSink& sink);
void mfm002(const KernelAnalysis& kernel, FindingSink& sink);
void mfm003(const KernelAnalysis& kernel, FindingSink& sink);
void mfm004(const KernelAnalysis& kernel, FindingSink& sink);
void mfm005(const KernelAnalysis& kernel, FindingSink& sink);
void cf001(const KernelAnalysis& kernel, FindingSink& sink);
void cf002(const KernelAnalysis& kernel, FindingSink& sink);
void cf003(const KernelAnalysis& kernel, FindingSink& sink);
void cf004(const KernelAnalysis& kernel, FindingSink& sink);
void cf005(const KernelAnalysis& kernel, FindingSink& sink);
void atm001(const KernelAnalysis& kernel, FindingSink& sink);
void atm002(const KernelAnalysis& kernel, FindingSink& sink);
void atm003(const KernelAnalysis& kernel, FindingSink& sink);
void haz001(const KernelAnalysis& kernel, FindingSink& sink);
void haz002(const KernelAnalysis& kernel, FindingSink& sink);
void haz003(const KernelAnalysis& kernel, FindingSink& sink);
void pin001(const KernelAnalysis& kernel, FindingSink& sink);

} // namespace kiln::isa::rules
