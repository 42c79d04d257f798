package lda

import "strings"

// EnglishStopWords returns words that say little of what an English text is about: articles, pronouns, prepositions,
// conjunctions, auxiliary verbs, and what is left of them where an apostrophe parts them.
func EnglishStopWords() []string { return strings.Fields(english) }

const english = `
the an and or but nor so yet if then else than as while because since until unless although though whether
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves who whom whose which what that this these those one ones other others
another each every either neither both all any some none no such same own
of in on at by for with without within from to into onto out off over under above below up down about around
after before between among through during against across along near upon toward towards per via like
is am are was were be been being has have had having do does did done doing can could may might must shall should will
would ought let
not only just also too very more most much many few less least even still again ever never always often here there
where when why how now already else rather quite almost perhaps
don doesn didn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn ll ve re`
