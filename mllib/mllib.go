package mllib

import (
	"context"

	"github.com/volley-engine/volley/mllib/als"
	"github.com/volley-engine/volley/mllib/graph"
	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/mllib/kmeans"
	"github.com/volley-engine/volley/mllib/lda"
	"github.com/volley-engine/volley/mllib/linear"
	"github.com/volley-engine/volley/mllib/mlp"
	"github.com/volley-engine/volley/rdd"
)

// Summary is what every training run comes to beside its model.
type Summary = train.Summary

// Quality is how far a model's objective was bounded to be above the least one.
type Quality = train.Quality

// What bounds how far a result is above the least objective.
const (
	ByDuality   = train.ByDuality
	ByCurvature = train.ByCurvature
	ByGradient  = train.ByGradient
)

// StopRule is what ends a training run beside its limits.
type StopRule = train.StopRule

// The rules of SEMANTICS section 4.
const (
	ByObjective = train.ByObjective
	ByWeights   = train.ByWeights
	ByFlexRR    = train.ByFlexRR
)

// ParseStopRule returns the rule of a name.
func ParseStopRule(name string) (StopRule, error) { return train.ParseStopRule(name) }

// Solver is a method of minimizing an objective.
type Solver = solver.Name

// The solvers.
const (
	Auto     = solver.Auto
	Descent  = solver.Descent
	Nesterov = solver.Nesterov
	Sqrt     = solver.Sqrt
	Constant = solver.Constant
	Adam     = solver.Adam
	SVRG     = solver.SVRG
	SDCA     = solver.SDCA
	LBFGS    = solver.LBFGS
	OWLQN    = solver.OWLQN
	Newton   = solver.Newton
	Interior = solver.Interior
	Normal   = solver.Normal
	CD       = solver.CD
)

// Bounded is how workers on tables train.
type Bounded = parameters.Bounded

// Solvers returns the names of all that there are to choose from.
func Solvers() []Solver { return solver.Names() }

// ParseSolver returns the solver of a name.
func ParseSolver(name string) (Solver, error) { return solver.Parse(name) }

// Linear models of two classes, or of a number.
type (
	// Loss is what a linear model is fitted by.
	Loss = linear.Loss
	// LinearConfig configures the training of a linear model.
	LinearConfig = linear.Config
	// LinearPlan is the plan of a linear model.
	LinearPlan = linear.Plan
	// LinearModel is a linear model.
	LinearModel = linear.Model
	// Trained is the outcome of training one.
	Trained = linear.Trained
	// Beginning is a model that training begins with.
	Beginning = linear.Beginning
	// Ended records that a model's training ended by its own stop rule.
	Ended = linear.Ended
)

// The losses.
const (
	Logistic     = linear.Logistic
	Hinge        = linear.Hinge
	SquaredHinge = linear.SquaredHinge
	Squared      = linear.Squared
	Softmax      = linear.Softmax
	OneVsRest    = linear.OneVsRest
)

// ParseLoss returns the loss of a name.
func ParseLoss(name string) (Loss, error) { return linear.ParseLoss(name) }

// BuildLinear declares the plan of a linear model.
func BuildLinear(g *rdd.Graph, c LinearConfig) LinearPlan { return linear.Build(g, c) }

// TrainLinear runs the loop and returns the model.
func TrainLinear(ctx context.Context, s *rdd.Session, c LinearConfig, p LinearPlan) (*Trained, error) {
	return linear.Train(ctx, s, c, p)
}

// Multinomial logistic regressions.
type (
	// SoftmaxPlan is the plan of one.
	SoftmaxPlan = linear.SoftmaxPlan
	// SoftmaxModel has weights of each feature and class.
	SoftmaxModel = linear.SoftmaxModel
	// Classified is the outcome of training one.
	Classified = linear.Classified
	// ClassBeginning is a model that training begins with.
	ClassBeginning = linear.ClassBeginning
)

// BuildSoftmax declares the plan of a multinomial logistic regression.
func BuildSoftmax(g *rdd.Graph, c LinearConfig) SoftmaxPlan { return linear.BuildSoftmax(g, c) }

// TrainSoftmax runs the loop and returns the model.
func TrainSoftmax(ctx context.Context, s *rdd.Session, c LinearConfig, p SoftmaxPlan) (*Classified, error) {
	return linear.TrainSoftmax(ctx, s, c, p)
}

// Networks.
type (
	// Activation is what a hidden layer makes of its sums.
	Activation = mlp.Activation
	// MLPConfig configures the training of a fully connected network.
	MLPConfig = mlp.Config
	// MLPPlan is the plan of a network.
	MLPPlan = mlp.Plan
	// NetworkModel is a fully connected network.
	NetworkModel = mlp.Model
	// NetworkBeginning is a network that training begins with.
	NetworkBeginning = mlp.Beginning
	// Networked is the outcome of training one.
	Networked = mlp.Networked
)

// The activations.
const (
	ReLU    = mlp.ReLU
	Sigmoid = mlp.Sigmoid
	Tanh    = mlp.Tanh
)

// ParseActivation returns the activation of a name.
func ParseActivation(name string) (Activation, error) { return mlp.ParseActivation(name) }

// BuildMLP declares the plan of a network.
func BuildMLP(g *rdd.Graph, c MLPConfig) MLPPlan { return mlp.Build(g, c) }

// TrainMLP runs the loop and returns the model.
func TrainMLP(ctx context.Context, s *rdd.Session, c MLPConfig, p MLPPlan) (*Networked, error) {
	return mlp.Train(ctx, s, c, p)
}

// Clusterings.
type (
	// Distance is how far a row is from a centre.
	Distance = kmeans.Distance
	// KMeansConfig configures k-means clustering.
	KMeansConfig = kmeans.Config
	// KMeansPlan is the plan of k-means.
	KMeansPlan = kmeans.Plan
	// KMeansModel is K centres.
	KMeansModel = kmeans.Model
	// Clustered is the outcome of k-means.
	Clustered = kmeans.Clustered
)

// The distances, and where k-means begins.
const (
	Euclidean       = kmeans.Euclidean
	Cosine          = kmeans.Cosine
	ParallelCentres = kmeans.ParallelCentres
	RandomCentres   = kmeans.RandomCentres
)

// ParseDistance returns the distance of a name.
func ParseDistance(name string) (Distance, error) { return kmeans.ParseDistance(name) }

// BuildKMeans declares the plan of k-means.
func BuildKMeans(g *rdd.Graph, c KMeansConfig) KMeansPlan { return kmeans.Build(g, c) }

// TrainKMeans runs Lloyd's iterations and returns the best model.
func TrainKMeans(ctx context.Context, s *rdd.Session, c KMeansConfig, p KMeansPlan) (*Clustered, error) {
	return kmeans.Train(ctx, s, c, p)
}

// Factorizations.
type (
	// ALSConfig configures the factorization of ratings.
	ALSConfig = als.Config
	// ALSPlan is the plan of a factorization.
	ALSPlan = als.Plan
	// FactorModel is a vector for each user and each item.
	FactorModel = als.Model
	// FactorBeginning is what of a factorization training begins with.
	FactorBeginning = als.Beginning
	// Factored is the outcome of a factorization.
	Factored = als.Factored
	// Recommended is an item, or a user, and its score.
	Recommended = als.Recommended
)

// BuildALS declares the plan of a factorization.
func BuildALS(g *rdd.Graph, c ALSConfig) ALSPlan { return als.Build(g, c) }

// TrainALS sweeps over users and items by turns and returns the model.
func TrainALS(ctx context.Context, s *rdd.Session, c ALSConfig, p ALSPlan) (*Factored, error) {
	return als.Train(ctx, s, c, p)
}

// Factorizations by stochastic gradient descent.
type (
	// SGDConfig configures one.
	SGDConfig = als.SGDConfig
	// SGDPlan is the plan of one.
	SGDPlan = als.SGDPlan
)

// BuildSGD declares the plan.
func BuildSGD(g *rdd.Graph, c SGDConfig) *SGDPlan { return als.BuildSGD(g, c) }

// TrainSGD makes passes over the ratings and returns the model.
func TrainSGD(ctx context.Context, s *rdd.Session, c SGDConfig, p *SGDPlan) (*Factored, error) {
	return als.TrainSGD(ctx, s, c, p)
}

// Graphs, given by their edges.
type (
	// Edges are files with an edge a line.
	Edges = graph.Edges
	// PageRankConfig configures PageRank.
	PageRankConfig = graph.Config
	// PageRankPlan is the plan of PageRank.
	PageRankPlan = graph.PageRankPlan
	// Ranks are the ranks of nodes.
	Ranks = graph.Ranks
	// ComponentsPlan is the plan of Components.
	ComponentsPlan = graph.ComponentsPlan
	// Components are the connected components of a graph.
	Components = graph.Components
)

// BuildPageRank declares the plan of PageRank.
func BuildPageRank(g *rdd.Graph, c PageRankConfig) *PageRankPlan { return graph.BuildPageRank(g, c) }

// RankNodes computes PageRank.
func RankNodes(ctx context.Context, s *rdd.Session, c PageRankConfig, p *PageRankPlan) (*Ranks, error) {
	return graph.RankNodes(ctx, s, c, p)
}

// BuildComponents declares the plan of Components.
func BuildComponents(g *rdd.Graph, c Edges) *ComponentsPlan { return graph.BuildComponents(g, c) }

// FindComponents computes the connected components of a graph.
func FindComponents(ctx context.Context, s *rdd.Session, c Edges, p *ComponentsPlan) (*Components, error) {
	return graph.FindComponents(ctx, s, c, p)
}

// Topic models.
type (
	// LDAConfig configures latent Dirichlet allocation.
	LDAConfig = lda.Config
	// LDAPlan is the plan of a topic model.
	LDAPlan = lda.Plan
	// TopicModel is topics.
	TopicModel = lda.Model
	// TopicsFound is the outcome of finding topics.
	TopicsFound = lda.Outcome
)

// ReadVocabulary reads the words of a vocabulary of documents in a format, one a line; of texts, in lower case.
func ReadVocabulary(ctx context.Context, uri string, format DocumentFormat) ([]string, error) {
	return lda.ReadVocabulary(ctx, uri, format)
}

// ReadStopWords reads words that texts may have and that do not count, one a line.
func ReadStopWords(ctx context.Context, uri string) ([]string, error) {
	return lda.ReadStopWords(ctx, uri)
}

// DocumentFormat is how documents are written.
type DocumentFormat = lda.Format

// The formats of documents.
const (
	LDAC = lda.LDAC
	UCI  = lda.UCI
	Text = lda.Text
)

// EnglishStopWords returns words that say little of what an English text is about.
func EnglishStopWords() []string { return lda.EnglishStopWords() }

// CheckDocuments refuses files of documents of which a line is wrong, or has a word that the vocabulary does not have.
func CheckDocuments(ctx context.Context, uris []string, format DocumentFormat, vocabulary int) error {
	return lda.CheckDocuments(ctx, uris, format, vocabulary)
}

// BuildLDA declares the plan of a topic model.
func BuildLDA(g *rdd.Graph, c LDAConfig) *LDAPlan { return lda.Build(g, c) }

// TrainLDA finds the topics.
func TrainLDA(ctx context.Context, s *rdd.Session, c LDAConfig, p *LDAPlan) (*TopicsFound, error) {
	return lda.Train(ctx, s, c, p)
}
